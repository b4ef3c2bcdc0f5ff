package diff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	unified "github.com/rogpeppe/go-internal/diff"
)

// MaxText is the maximum size in bytes of content that is compared line by
// line.
const MaxText = 4 << 20

// Text is a Delta for people and for git apply.
type Text struct {
	Patch          string // input for git apply: git headers, then the lines that differ
	Short          string // Patch for people: one line instead of binary content
	Added, Removed int    // number of lines
	Binary         bool   // the content is not text
	Lost           string // why content cannot be shown; "": it is shown
}

// Text compares both sides. name is the name of the resource, with slashes and
// without a leading one. A sentence without a patch header replaces content
// that is too large or lost, so git apply leaves that file unchanged.
func (d Delta) Text(ctx context.Context, name string) (Text, error) {
	if d.Before.Exists() && d.After.Exists() && d.Before.Type != d.After.Type {
		return d.replaced(ctx, name)
	}
	if d.Before.Lines != nil || d.After.Lines != nil {
		return d.parts(name), nil
	}
	if d.Before.Type == "dir" || d.After.Type == "dir" || mode(d.Before)+mode(d.After) == "" {
		line := d.line(name)
		return Text{Patch: line, Short: line}, nil
	}
	t := Text{}
	t.add(d.header(name))
	err := d.body(ctx, name, &t)
	return t, err
}

func (t *Text) add(text string) { t.Patch, t.Short = t.Patch+text, t.Short+text }

// replaced returns the text of a file that became another type: one is deleted,
// and the other created.
func (d Delta) replaced(ctx context.Context, name string) (Text, error) {
	gone, err := Delta{Resource: d.Resource, Before: d.Before}.Text(ctx, name)
	if err != nil {
		return gone, err
	}
	came, err := Delta{Resource: d.Resource, After: d.After}.Text(ctx, name)
	came.Patch, came.Short = gone.Patch+came.Patch, gone.Short+came.Short
	came.Added, came.Removed = came.Added+gone.Added, came.Removed+gone.Removed
	came.Binary = came.Binary || gone.Binary
	if came.Lost == "" {
		came.Lost = gone.Lost
	}
	return came, err
}

// parts returns which parts of a resource that is not a file differ, in lines
// that are not part of a patch.
func (d Delta) parts(name string) Text {
	t := Text{}
	t.add(d.line(name))
	tell := func(sign string, side, other ResourceVersion) (n int) {
		for _, l := range side.Lines {
			if slices.Contains(other.Lines, l) {
				continue
			}
			t.add("  " + sign + " " + l + "\n")
			n++
		}
		return n
	}
	t.Removed = tell("-", d.Before, d.After)
	t.Added = tell("+", d.After, d.Before)
	return t
}

// line describes in words what a patch cannot express: git knows no folders.
func (d Delta) line(name string) string {
	what, then := "changed", d.After
	switch {
	case !d.Before.Exists():
		what = "created"
	case !d.After.Exists():
		what, then = "deleted", d.Before
	}
	text := then.Type + " " + quote(name) + " " + what
	switch {
	case d.Before.Exists() && d.After.Exists() && d.Before.Mode != d.After.Mode:
		text += ", mode " + d.Before.Mode + " -> " + d.After.Mode
	case then.Mode != "":
		text += ", mode " + then.Mode
	}
	return text + attributes(d) + "\n"
}

func attributes(d Delta) string {
	if d.Before.Exists() && d.After.Exists() && d.Before.Attrs != d.After.Attrs {
		return ", attributes changed"
	}
	return ""
}

// mode returns a file's type and bits in git's format.
func mode(s ResourceVersion) string {
	switch s.Type {
	case "file":
		return "10" + s.Mode
	case "link":
		return "120000"
	default:
		return ""
	}
}

func (d Delta) header(name string) string {
	a, b := spaced("a/"+name), spaced("b/"+name)
	text := "diff --git " + a + " " + b + "\n"
	switch from, to := mode(d.Before), mode(d.After); {
	case from == "":
		text += "new file mode " + to + "\n"
	case to == "":
		text += "deleted file mode " + from + "\n"
	case from != to:
		text += "old mode " + from + "\nnew mode " + to + "\n"
	}
	if more := attributes(d); more != "" {
		text = "file " + quote(name) + strings.TrimPrefix(more, ",") + "\n" + text
	}
	return text
}

// content is one side, as far as it can be compared.
type content struct {
	data  []byte
	size  int64
	large bool
	lost  error
}

func (c content) text() bool { return utf8.Valid(c.data) && !bytes.ContainsRune(c.data, 0) }

func (c content) words() string {
	if c.lost != nil {
		return "content not shown"
	}
	if c.size == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", c.size)
}

func (d Delta) body(ctx context.Context, name string, t *Text) error {
	if d.Before.Digest == d.After.Digest && d.Before.Target == d.After.Target && d.Before.Type == d.After.Type {
		return nil // only bits or attributes differ
	}
	was, err := d.Before.read(ctx)
	if err != nil {
		return err
	}
	is, err := d.After.read(ctx)
	if err != nil {
		return err
	}
	from, to := quote("a/"+name), quote("b/"+name)
	if !d.Before.Exists() {
		from = "/dev/null"
	}
	if !d.After.Exists() {
		to = "/dev/null"
	}
	switch {
	case was.lost != nil || is.lost != nil:
		t.Lost = strings.ReplaceAll(errors.Join(was.lost, is.lost).Error(), "\n", "; ")
	case was.large || is.large:
		t.Lost = fmt.Sprintf("more than %d bytes are not compared", MaxText)
	case !was.text() || !is.text():
		t.Binary = true
		patch, err := binaryPatch(d.Before, d.After, was.data, is.data)
		t.Patch += patch
		t.Short += fmt.Sprintf("Binary files %s (%s) and %s (%s) differ\n", from, was.words(), to, is.words())
		return err
	default:
		if mode(d.Before) == mode(d.After) && d.Before.Type == "link" { // otherwise GNU patch expects a file
			t.add(indexLine(d.Before, d.After, was.data, is.data) + " 120000\n")
		}
		t.lines(from, was.data, to, is.data)
	}
	if t.Lost != "" {
		line := fmt.Sprintf("%s; before: %s, after: %s; not in the patch: %s\n", strings.TrimSuffix(d.line(name), "\n"), was.words(), is.words(), t.Lost)
		t.Patch, t.Short = line, line
	}
	return nil
}

// lines adds the hunks, with fixed names.
func (t *Text) lines(from string, was []byte, to string, is []byte) {
	out := unified.Diff("a", was, "b", is)
	if out == nil {
		return // both are empty
	}
	for range 3 { // the library's own header
		_, out, _ = bytes.Cut(out, []byte("\n"))
	}
	t.add("--- " + tabbed(from) + "\n+++ " + tabbed(to) + "\n" + string(out))
	for line := range bytes.Lines(out) {
		switch line[0] {
		case '+':
			t.Added++
		case '-':
			t.Removed++
		}
	}
}

// tabbed marks the end of a name with a space in it, as git does.
func tabbed(name string) string {
	if strings.Contains(name, " ") && !strings.HasPrefix(name, `"`) {
		return name + "\t"
	}
	return name
}

// spaced returns a name for a header in which only spaces separate names.
func spaced(name string) string {
	if quoted := quote(name); strings.HasPrefix(quoted, `"`) || !strings.Contains(name, " ") {
		return quoted
	}
	return `"` + name + `"`
}

func (s ResourceVersion) read(ctx context.Context) (content, error) {
	if s.Type == "link" {
		return content{data: []byte(s.Target), size: int64(len(s.Target))}, nil
	}
	if !s.Exists() || s.Digest == "" {
		return content{}, nil
	}
	r, err := s.Open(ctx)
	if err != nil {
		return content{lost: err}, nil //nolint:nilerr // it is told, and the other side shown
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(io.LimitReader(r, MaxText+1))
	c := content{data: data, size: int64(len(data)), large: len(data) > MaxText}
	if err == nil && c.large {
		var rest int64
		rest, err = io.Copy(io.Discard, r)
		c.size += rest
	} else if err == nil {
		_, err = r.Read(make([]byte, 1)) // only the read at the end reports that it is complete
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return content{}, context.Cause(ctx)
		}
		return content{lost: err}, nil
	}
	return c, nil
}

// quote writes a name as git does: in quotes if it does not fit in one line.
func quote(name string) string {
	plain := utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '"' || r == '\\' }) < 0
	if plain {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			_, _ = fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
