package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/internal/callview"
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
	Shown                int // resources on the page; rows of one table are joined
	Requests             []requestLine
	MoreRequests         int
	Erased               []string
	One                  bool // a single file
	CanRevert            bool
	Command              string
}

// fileDiff is one resource of a difference.
type fileDiff struct {
	N              int
	Of             string // ID of the difference
	Request        string // digest of the request that the difference belongs to; empty: none
	Resource, Verb string
	Calls          []string
	Added, Removed int
	Binary         bool
	Lost           string
	Table          *rowTable // for rows of a database
	Pictures       []picture
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

// partsOnPage limits the transactions of a prompt on one page.
const partsOnPage = 20

// promptDiff has the differences of the transactions of a prompt, oldest first.
type promptDiff struct {
	ID        string
	Parts     []diffPage
	More      int // transactions that are left out
	CanRevert bool
	Command   string
}

func (c *Console) diff(r *http.Request) (string, page, error) {
	id := idOf(r.URL.Query())
	ids, err := c.parts(r.Context(), id)
	if err != nil {
		return "", page{}, err
	}
	if len(ids) == 1 {
		p, err := c.diffOf(r, ids[0])
		return "diff", page{Title: "Difference", Place: "timeline", Data: p}, err
	}
	all := promptDiff{ID: id, More: max(0, len(ids)-partsOnPage)}
	if c.Hint != nil {
		all.Command = c.Hint("diff", id)
	}
	for _, one := range slices.Backward(ids[:min(len(ids), partsOnPage)]) {
		p, err := c.diffOf(r, one)
		if err != nil {
			return "", page{}, err
		}
		all.Parts, all.CanRevert = append(all.Parts, p), all.CanRevert || p.CanRevert
	}
	return "diffs", page{Title: "Difference of a prompt", Place: "timeline", Data: all}, nil
}

// diffOf returns the difference of a transaction or a call.
func (c *Console) diffOf(r *http.Request, id string) (diffPage, error) {
	d, err := c.Runtime.Diff(r.Context(), id)
	if err != nil {
		return diffPage{}, err
	}
	p, err := c.shownDiff(r, d, id)
	if request := r.URL.Query().Get("request"); err == nil && request != "" {
		err = c.unchanged(r.Context(), d.Txn, request)
	}
	if err != nil {
		return p, err
	}
	if c.Hint != nil {
		p.Command = c.Hint("diff", id)
	}
	p.CanRevert, err = c.leftSomething(r.Context(), d)
	return p, err
}

// leftSomething reports whether a revert takes something of a difference back.
func (c *Console) leftSomething(ctx context.Context, d diff.Diff) (bool, error) {
	t, err := c.Runtime.Load(ctx, d.Txn)
	if err != nil || d.Call == "" {
		return err == nil && canRevert(t), err
	}
	call, ok := t.Call(d.Call)
	if !ok {
		return false, nil
	}
	_, can := wayBack(call, callview.AttemptOf(call))
	return can, nil
}

// shownDiff returns the part of a difference that a page shows: a single file, or
// those from a number on.
func (c *Console) shownDiff(r *http.Request, d diff.Diff, id string) (p diffPage, err error) {
	ctx := r.Context()
	p = diffPage{ID: id, Txn: d.Txn, Call: d.Call, State: string(d.State), Total: len(d.Deltas), Erased: d.Erased}
	if err := c.requests(ctx, &p, d); err != nil {
		return p, err
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
		f, err := fileOf(ctx, d.Deltas[i], i, id)
		if err != nil {
			return p, err
		}
		p.Shown++
		p.Added, p.Removed = p.Added+f.Added, p.Removed+f.Removed
		if f.Open = p.One || len(f.Lines) <= left; f.Open {
			left -= len(f.Lines)
		} else {
			f.More, f.Lines = len(f.Lines)+f.More, nil
		}
		if !joined(p.Files, f) {
			p.Files = append(p.Files, f)
		}
	}
	return p, nil
}

func fileOf(ctx context.Context, d diff.Delta, n int, of string) (fileDiff, error) {
	text, err := d.Text(ctx, patchName(d.Resource))
	if err != nil {
		return fileDiff{}, err
	}
	f := fileDiff{N: n, Of: of, Resource: d.Resource, Verb: "changed", Calls: d.Calls, Added: text.Added, Removed: text.Removed, Binary: text.Binary, Lost: text.Lost}
	switch {
	case !d.Before.Exists():
		f.Verb = "created"
	case !d.After.Exists():
		f.Verb = "deleted"
	}
	facts := text.Binary || text.Lost != ""
	f.Before, f.After = versionWords(d.Before, facts), versionWords(d.After, facts)
	if rows, ok := rowsOf(d); ok {
		f.Table, f.Resource, f.Before, f.After = &rows, tableOf(d.Resource), "", ""
		f.Added, f.Removed = boolCount(d.After.Exists()), boolCount(d.Before.Exists())
		return f, nil
	}
	if text.Binary {
		f.Pictures = pictures(ctx, d, "/image?"+url.Values{"id": {of}, "file": {strconv.Itoa(n)}}.Encode())
	}
	f.Lines = linesOf(text.Short)
	if len(f.Lines) > maxLines {
		f.More, f.Lines = len(f.Lines)-maxLines, f.Lines[:maxLines]
	}
	return f, nil
}

func boolCount(is bool) int {
	if is {
		return 1
	}
	return 0
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
