package console

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/diff"
)

// Limits of a page with differences. A file with more lines is shown when a
// person opens it.
const (
	filesOnPage = 100
	openLines   = 300  // of all files that the page shows at once
	maxLines    = 5000 // of one file
	maxColumns  = 1000 // of one line
)

type diffPage struct {
	ID, Txn, Call, State string
	Files                []fileDiff
	Total                int
	Next                 int // index of the first file of the next page; 0: there is none
	Added, Removed       int
	Untracked, Held      []diff.UntrackedCall
	Erased               []string
	One                  bool // a single file
	Command              string
}

// fileDiff is one resource of a difference.
type fileDiff struct {
	N              int
	Of             string // ID of the difference
	Resource, Verb string
	Calls          []string
	Added, Removed int
	Binary         bool
	Lost           string
	Before, After  string // facts of both versions
	Lines          []diffLine
	Open           bool // its lines are on the page
	More           int  // lines that are left out
}

// diffLine is a line of a difference.
type diffLine struct {
	Kind     string // add, del, same, gap, note
	Old, New int    // numbers; 0: none
	Text     string
}

func (c *Console) diff(r *http.Request) (string, page, error) {
	ctx, id := r.Context(), idOf(r.URL.Query())
	d, err := c.Runtime.Diff(ctx, id)
	if err != nil {
		return "", page{}, err
	}
	p := diffPage{ID: id, Txn: d.Txn, Call: d.Call, State: string(d.State), Total: len(d.Deltas), Untracked: d.Untracked, Held: d.Held, Erased: d.Erased}
	if c.Hint != nil {
		p.Command = c.Hint("diff", id)
	}
	first, last := int(min(number(r, "from"), int64(len(d.Deltas)))), 0
	last = min(first+filesOnPage, len(d.Deltas))
	if r.URL.Query().Has("file") {
		first = int(min(number(r, "file"), int64(len(d.Deltas))))
		last, p.One = min(first+1, len(d.Deltas)), true
	} else if last < len(d.Deltas) {
		p.Next = last
	}
	left := openLines
	for i := first; i < last; i++ {
		f, err := fileOf(ctx, d.Deltas[i], i)
		f.Of = id
		if err != nil {
			return "", page{}, err
		}
		p.Added, p.Removed = p.Added+f.Added, p.Removed+f.Removed
		if f.Open = p.One || len(f.Lines) <= left; f.Open {
			left -= len(f.Lines)
		} else {
			f.More, f.Lines = len(f.Lines)+f.More, nil
		}
		p.Files = append(p.Files, f)
	}
	return "diff", page{Title: "Difference", Place: "timeline", Data: p}, nil
}

func fileOf(ctx context.Context, d diff.Delta, n int) (fileDiff, error) {
	text, err := d.Text(ctx, patchName(d.Resource))
	if err != nil {
		return fileDiff{}, err
	}
	f := fileDiff{N: n, Resource: d.Resource, Verb: "changed", Calls: d.Calls, Added: text.Added, Removed: text.Removed, Binary: text.Binary, Lost: text.Lost}
	switch {
	case !d.Before.Exists():
		f.Verb = "created"
	case !d.After.Exists():
		f.Verb = "deleted"
	}
	f.Before, f.After = versionWords(d.Before, text.Binary), versionWords(d.After, text.Binary)
	f.Lines = linesOf(text.Short)
	if len(f.Lines) > maxLines {
		f.More, f.Lines = len(f.Lines)-maxLines, f.Lines[:maxLines]
	}
	return f, nil
}

// patchName returns a name without a leading slash for the header of a patch.
func patchName(resource string) string {
	r, err := perm.ParseResource(resource)
	if err != nil || r.Facts().Kind != "file" {
		return resource
	}
	return r.Facts().Root + "/" + r.Facts().Path
}

// versionWords describes a version: type and mode, and size and digest of binary
// content.
func versionWords(v diff.ResourceVersion, binary bool) string {
	if !v.Exists() {
		return "nothing"
	}
	words := []string{v.Type}
	if v.Mode != "" {
		words = append(words, v.Mode)
	}
	if v.Target != "" {
		words = append(words, "to "+v.Target)
	}
	if binary && v.Kept != nil {
		words = append(words, count(int(v.Kept.Size), "byte"))
	}
	if binary && v.Digest != "" {
		words = append(words, v.Digest)
	}
	return strings.Join(words, ", ")
}

var hunk = regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@`)

// linesOf reads the lines of a patch of one file. A gap says how many equal lines
// are left out.
func linesOf(patch string) (all []diffLine) {
	old, now, inside := 1, 1, false
	for text := range strings.Lines(patch) {
		text = strings.TrimSuffix(text, "\n")
		if m := hunk.FindStringSubmatch(text); m != nil {
			from, to := lineNumber(m[1]), lineNumber(m[2])
			if gap := from - old; gap > 0 {
				all = append(all, diffLine{Kind: "gap", Text: count(gap, "equal line")})
			}
			old, now, inside = max(from, 1), max(to, 1), true
			continue
		}
		if !inside {
			if note := noteOf(text); note != "" {
				all = append(all, diffLine{Kind: "note", Text: note})
			}
			continue
		}
		l := diffLine{Kind: "same", Text: shorten(strings.TrimLeft(text[:min(len(text), 1)], "+- ") + text[min(len(text), 1):])}
		switch {
		case strings.HasPrefix(text, "+"):
			l.Kind, l.New, now = "add", now, now+1
		case strings.HasPrefix(text, "-"):
			l.Kind, l.Old, old = "del", old, old+1
		case strings.HasPrefix(text, `\`):
			l = diffLine{Kind: "note", Text: strings.TrimPrefix(text, `\ `)}
		default:
			l.Old, l.New, old, now = old, now, old+1, now+1
		}
		all = append(all, l)
	}
	return all
}

// lineNumber returns the number of some digits, 0 if it is too large.
func lineNumber(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// noteOf returns what a line before the first hunk says to a person. The names
// and digests of the header are elsewhere on the page.
func noteOf(text string) string {
	if text == "" || slices.ContainsFunc([]string{"diff --git ", "index ", "--- ", "+++ ", "new file mode ", "deleted file mode "}, func(p string) bool { return strings.HasPrefix(text, p) }) {
		return ""
	}
	return shorten(text)
}

func shorten(text string) string {
	runes := []rune(text)
	if len(runes) <= maxColumns {
		return text
	}
	return string(runes[:maxColumns]) + fmt.Sprintf(" … %d more characters", len(runes)-maxColumns)
}

// wanted returns the difference that an approval request shows.
func wanted(patch, resource string) fileDiff {
	f := fileDiff{Resource: resource, Verb: "wants to change", Lines: linesOf(patch), Open: true}
	for _, l := range f.Lines {
		switch l.Kind {
		case "add":
			f.Added++
		case "del":
			f.Removed++
		}
	}
	if len(f.Lines) > maxLines {
		f.More, f.Lines = len(f.Lines)-maxLines, f.Lines[:maxLines]
	}
	return f
}

// splitPatch returns the parts of a patch of several files.
func splitPatch(patch string) (parts []string) {
	var b strings.Builder
	for text := range strings.Lines(patch) {
		if strings.HasPrefix(text, "diff --git ") && b.Len() > 0 {
			parts = append(parts, b.String())
			b.Reset()
		}
		b.WriteString(text)
	}
	return append(parts, b.String())
}

// patchOf returns the name of the file of a part of a patch.
func patchOf(part string) string {
	first, _, _ := strings.Cut(part, "\n")
	if i := strings.LastIndex(first, ` "b/`); i >= 0 && strings.HasPrefix(first, "diff --git ") {
		if name, err := strconv.Unquote(first[i+1:]); err == nil {
			return strings.TrimPrefix(name, "b/")
		}
	}
	if _, name, found := strings.Cut(first, " b/"); found && strings.HasPrefix(first, "diff --git ") {
		return name
	}
	return "the file"
}
