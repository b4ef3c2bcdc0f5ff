package files

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
)

// The limits of a search.
const (
	MaxSearched = 8 << 20 // bytes of a file; larger files are skipped
	MaxLine     = 400     // bytes of a displayed line
	maxPattern  = 1000
)

// Query configures Search.
type Query struct {
	Pattern string // RE2, matched against each line
	Literal bool   // the pattern is literal text
	Glob    string // selects files: *.go by name; src/**/*.go by path below the root; "": all
	Page    int    // first is 1
}

// Match is one matching line.
type Match struct {
	Path string
	Line int    // first is 1
	Text string // truncated at MaxLine
}

// Search finds lines in the text files below a directory, or in one file. It
// authorizes listing each directory and reading each file, with one approval
// request if any is necessary. It omits denied entries, links, files that are
// not text, and those above MaxSearched.
func (f *Files) Search(ctx context.Context, dir string, q Query) (Page[Match], error) {
	p, err := newPager[Match](q.Page, PageMatches)
	if err != nil {
		return Page[Match]{}, err
	}
	expr, err := q.compile()
	if err != nil {
		return Page[Match]{}, err
	}
	h, err := f.entrySearch(ctx)
	if err != nil {
		return Page[Match]{}, err
	}
	searched := func(d disk.Info, name string) bool { return h.searched(d, name, q.Glob) }
	err = h.all(ctx, dir, perm.Read, searched, func(name string, _ disk.Info) (bool, error) { return h.grep(ctx, name, expr, p) })
	return withLeft(p.page, h, err)
}

// Check returns an error for an invalid query, except for its page. The error
// names the field.
func (q Query) Check() error {
	_, err := q.parse()
	return err
}

func (q Query) parse() (*regexp.Regexp, error) {
	text := q.Pattern
	if text == "" || len(text) > maxPattern {
		return nil, fmt.Errorf("\"pattern\" has %d bytes; valid are 1 to %d", len(text), maxPattern)
	}
	if q.Literal {
		text = regexp.QuoteMeta(text)
	}
	for _, segment := range strings.Split(q.Glob, "/") {
		if _, err := path.Match(segment, ""); err != nil {
			return nil, fmt.Errorf("\"glob\" is %q, a %w: valid are such as *.go and src/**/*.go", q.Glob, err)
		}
	}
	expr, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("\"pattern\" is no RE2 expression: %w; literal finds plain text", err)
	}
	return expr, nil
}

func (q Query) compile() (*regexp.Regexp, error) {
	expr, err := q.parse()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ctxperm.ErrInvalid, err)
	}
	return expr, nil
}

// searched reports whether an entry is a file to search.
func (h *entrySearch) searched(d disk.Info, name, glob string) bool {
	switch {
	case d.Type == disk.TypeDir || !matches(glob, name):
		return false
	case d.Type == disk.TypeLink:
		h.leave(leftLink)
	case d.Type != disk.TypeFile:
		h.leave(leftSpecial)
	case d.Size > MaxSearched:
		h.leave(leftTooLarge)
	default:
		return true
	}
	return false
}

// grep adds the matching lines of one file.
func (h *entrySearch) grep(ctx context.Context, name string, expr *regexp.Regexp, p *pager[Match]) (more bool, err error) {
	var data []byte
	err = h.files.site.open(ctx, name, func(file disk.File, _ disk.Info) error {
		data, err = io.ReadAll(io.LimitReader(file, MaxSearched+1))
		return err
	})
	switch {
	case err != nil && !passing(err):
		return false, refused(err)
	case err != nil:
		h.leave(whyLeft(err))
		return true, nil
	case len(data) > MaxSearched:
		h.leave(leftTooLarge)
		return true, nil
	case bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data):
		h.leave(leftNoText)
		return true, nil
	}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		line = bytes.TrimRight(line, "\r\n")
		if !expr.Match(line) {
			continue
		}
		text := string(line)
		if len(text) > MaxLine {
			text = cut(text, MaxLine)
		}
		if !p.add(Match{Path: name, Line: number, Text: text}) {
			return false, nil
		}
	}
	return true, nil
}

// matches reports whether a glob matches a file. It matches the name or, if it
// has a slash, the path, in which ** matches any directories.
func matches(glob, name string) bool {
	if glob == "" {
		return true
	}
	if !strings.Contains(glob, "/") {
		name = path.Base(name)
	}
	return matchSegments(strings.Split(glob, "/"), strings.Split(name, "/"))
}

func matchSegments(glob, name []string) bool {
	if len(glob) == 0 {
		return len(name) == 0
	}
	if glob[0] == "**" {
		for i := range len(name) + 1 {
			if matchSegments(glob[1:], name[i:]) {
				return true
			}
		}
		return false
	}
	if len(name) == 0 {
		return false
	}
	ok, err := path.Match(glob[0], name[0])
	return err == nil && ok && matchSegments(glob[1:], name[1:])
}
