package files

import (
	"context"
	"fmt"
	"math"

	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// entry is one line of a list.
type entry struct {
	Name    string `json:"name"`              // with recursive its path below the root
	Type    string `json:"type"`              // file, dir, link, other
	Size    int64  `json:"size"`              // bytes; of a file
	Escaped bool   `json:"escaped,omitempty"` // the name is no text: its other bytes are shown as %XX, and no call can name it
}

// printed shows a name. JSON has no way to write one that is no text.
func printed(name string) (text string, escaped bool) {
	text = canon.Printable(name, math.MaxInt)
	return text, text != name
}

func entryOf(name string, i handle.Info) entry {
	e := entry{Type: i.Type}
	e.Name, e.Escaped = printed(name)
	if i.Type == "file" {
		e.Size = i.Size
	}
	return e
}

type listIn struct {
	rootArg
	Path      string `json:"path"`
	Recursive bool   `json:"recursive"`
	Page      int    `json:"page"`
}

func (i listIn) dir() string {
	if i.Path == "" {
		return "."
	}
	return i.Path
}

func listAccess(i listIn) ([]access, error) { return []access{{perm.List, "path", i.dir()}}, nil }

const dirArgument = `"path":{"type":"string","description":"Path relative to the root; the root itself by default."}`

func listSpec() tool.Spec {
	return tool.Spec{
		Name: "file_list", Tags: []string{"files"},
		Description: "List a directory; with recursive all below it, sorted. The answer is one page: entries, has_more, and left_out: how many entries it passes over, by reason.",
		Input:       object(dirArgument+`,"recursive":{"type":"boolean","description":"List what is in directories too."}`+pageArgument+rootArgument, ``),
		Roles:       selectors("recursive", "page"),
		Needs:       anywhere(perm.List), AccessFor: exact(listAccess), EffectClass: effect.Pure,
		Execute: with(func(ctx context.Context, f *handle.Files, i listIn) (tool.Result, error) {
			number := max(i.Page, 1)
			if i.Recursive {
				page, err := f.Walk(ctx, i.dir(), number)
				return entries(page, func(e handle.Entry) entry { return entryOf(e.Path, e.Info) }, err)
			}
			page, err := f.ListPage(ctx, i.dir(), number)
			return entries(page, func(e handle.Info) entry { return entryOf(e.Name, e) }, err)
		}),
	}
}

// pageEnd is what an answer of one page says of the rest.
type pageEnd struct {
	HasMore bool           `json:"has_more"`
	LeftOut map[string]int `json:"left_out,omitempty"` // how many entries, by reason
}

// entries is one page of a list.
func entries[T any](page handle.Page[T], line func(T) entry, err error) (tool.Result, error) {
	if err != nil {
		return tool.Result{}, err
	}
	list := make([]entry, 0, len(page.Items))
	for _, e := range page.Items {
		list = append(list, line(e))
	}
	return result(struct {
		Entries []entry `json:"entries"`
		pageEnd
	}{list, pageEnd{page.HasMore, page.LeftOut}})
}

func result(v any) (tool.Result, error) {
	data, err := canon.Marshal(v)
	return tool.Result{JSON: data}, err
}

type searchIn struct {
	listIn
	Pattern string `json:"pattern"`
	Literal bool   `json:"literal"`
	Glob    string `json:"glob"`
}

// match is one line that a search found.
type match struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`

	Escaped bool `json:"escaped,omitempty"` // as in entry
}

func searchAccess(i searchIn) ([]access, error) {
	if err := (handle.Query{Pattern: i.Pattern, Literal: i.Literal, Glob: i.Glob}).Check(); err != nil {
		return nil, fmt.Errorf("argument %w", err)
	}
	return listAccess(i.listIn)
}

func searchSpec() tool.Spec {
	return tool.Spec{
		Name: "file_search", Tags: []string{"files"},
		Description: "Find lines in text files below a directory, or in one file. One page: matches, has_more, left_out: entries skipped, by reason (denied, unreadable, link, too_large, not_text).",
		Input: object(`"pattern":{"type":"string","minLength":1,"maxLength":1000,"description":"RE2 expression, matched against each line."},
			"literal":{"type":"boolean","description":"The pattern is plain text."},
			"glob":{"type":"string","description":"Which files: *.go by name, src/**/*.go by path."},`+dirArgument+pageArgument+rootArgument, `"pattern"`),
		Roles:     selectors("pattern", "literal", "glob", "page"),
		Needs:     anywhere(perm.List, perm.Read),
		AccessFor: exact(searchAccess), EffectClass: effect.Pure,
		Execute: with(func(ctx context.Context, f *handle.Files, i searchIn) (tool.Result, error) {
			page, err := f.Search(ctx, i.dir(), handle.Query{Pattern: i.Pattern, Literal: i.Literal, Glob: i.Glob, Page: max(i.Page, 1)})
			if err != nil {
				return tool.Result{}, err
			}
			found := make([]match, 0, len(page.Items))
			for _, m := range page.Items {
				line := match{Line: m.Line, Text: m.Text}
				line.Path, line.Escaped = printed(m.Path)
				found = append(found, line)
			}
			return result(struct {
				Matches []match `json:"matches"`
				pageEnd
			}{found, pageEnd{page.HasMore, page.LeftOut}})
		}),
	}
}
