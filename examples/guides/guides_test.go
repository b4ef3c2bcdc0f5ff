package guides_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/proof/pgtest"
)

// root is the folder of the repository. Some tests change the current folder.
var root, _ = filepath.Abs("../..")

// block is the text between two fences of a page.
type block struct {
	doc  string // its name below docs, or README.md
	line int    // of its first fence
	lang string
	text string

	before string // the last line of text before it
	notRun string // why no test runs it; "": a test must
}

func (b block) String() string { return fmt.Sprintf("%s:%d (%s)", b.doc, b.line, b.lang) }

// pages returns the files whose blocks run: tutorials, guides, reference pages,
// and README.md.
func pages() ([]string, error) {
	all := []string{filepath.Join(root, "README.md")}
	for _, folder := range []string{"tutorial", "guides", "reference"} {
		names, err := filepath.Glob(filepath.Join(root, "docs", folder, "*.md"))
		if err != nil || len(names) == 0 {
			return nil, fmt.Errorf("docs/%s: no pages: %w", folder, err)
		}
		all = append(all, names...)
	}
	return all, nil
}

// documents returns the blocks of all pages, in their order.
func documents() (all []block, err error) {
	names, err := pages()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		doc, err := filepath.Rel(filepath.Join(root, "docs"), name)
		if err != nil {
			return nil, err
		}
		found, err := split(strings.TrimPrefix(filepath.ToSlash(doc), "../"), string(data))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func read(t testing.TB) []block {
	t.Helper()
	all, err := documents()
	require.NoError(t, err)
	return all
}

var listItem = regexp.MustCompile(`^\s*([-*]|\d+\.) `)

// notRunMark matches the line before a block that no test can run. It gives the
// reason.
var notRunMark = regexp.MustCompile(`^<!-- not run: (\S.*) -->$`)

// split returns the blocks of one document. Code is between fences, so that no
// block is overlooked: an indented one is an error.
func split(doc, text string) (found []block, err error) {
	var in *block
	before, reason, blank, list := "", "", true, false
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(strings.TrimLeft(line, " "), "```")
		switch {
		case isFence && in == nil:
			in = &block{doc: doc, line: i + 1, lang: strings.TrimSpace(fence), before: before, notRun: reason}
			reason = ""
		case isFence:
			found, in = append(found, *in), nil
		case in != nil:
			in.text += line + "\n"
		case notRunMark.MatchString(line):
			reason = notRunMark.FindStringSubmatch(line)[1]
		case strings.TrimSpace(line) != "":
			if reason != "" {
				return nil, fmt.Errorf("%s:%d: a mark without a block below it", doc, i+1)
			}
			if blank && !list && strings.HasPrefix(line, "    ") {
				return nil, fmt.Errorf("%s:%d: an indented block: put it between fences", doc, i+1)
			}
			before = line
		}
		if in == nil && !isFence {
			list = listItem.MatchString(line) || list && (strings.TrimSpace(line) == "" || strings.HasPrefix(line, " "))
			blank = strings.TrimSpace(line) == ""
		}
	}
	if in != nil {
		return nil, fmt.Errorf("%s: the block of line %d has no end", doc, in.line)
	}
	return found, nil
}

// ran holds the blocks that the tests of this process used, by page and line.
var (
	ranMu sync.Mutex
	ran   = map[string]bool{}
)

// take returns block n (from 0) of those of a page in a language that can run,
// and records that a test runs it.
func take(t testing.TB, doc, lang string, n int) string {
	t.Helper()
	blocks := slices.DeleteFunc(read(t), func(b block) bool { return b.doc != doc || b.lang != lang || b.notRun != "" })
	require.Greater(t, len(blocks), n, "%s has no block %d of %q", doc, n, lang)
	noteRun(blocks[n])
	return blocks[n].text
}

// noteRun records that a test runs a block.
func noteRun(b block) {
	ranMu.Lock()
	defer ranMu.Unlock()
	ran[b.String()] = true
}

// TestGoBlocks compares each block of Go code with a region of a test, between
// the comments "guide: DOCUMENT" and "end of guide", and each region with a
// block.
func TestGoBlocks(t *testing.T) {
	regions := regionsOf(t)
	for _, b := range read(t) {
		if b.lang != "go" {
			continue
		}
		if b.doc == "tutorial/first-tool.md" && ofExample(t, b.text) {
			continue
		}
		at := slices.IndexFunc(regions, func(r block) bool { return r.doc == b.doc && r.text == b.text })
		require.GreaterOrEqual(t, at, 0, "%s: no region of a test is this text:\n%s", b, b.text)
		regions = slices.Delete(regions, at, at+1)
	}
	require.Empty(t, regions, "regions that no document shows")
}

var begin = regexp.MustCompile(`^(\t*)// guide: (\S+)$`)

// regionsOf returns the regions of the tests.
func regionsOf(t *testing.T) (regions []block) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "examples", "*", "*_test.go"))
	require.NoError(t, err)
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		var in *block
		var indent string
		for _, line := range strings.Split(string(data), "\n") {
			switch m := begin.FindStringSubmatch(line); {
			case m != nil:
				require.Nil(t, in, "%s: a region in a region", name)
				in, indent = &block{doc: m[2], lang: "go"}, m[1]
			case in != nil && strings.TrimSpace(line) == "// end of guide":
				in.text = strings.Trim(in.text, "\n") + "\n" // a directive needs an empty line before it
				regions, in = append(regions, *in), nil
			case in != nil:
				in.text += strings.TrimPrefix(line, indent) + "\n"
			}
		}
		require.Nil(t, in, "%s: a region without an end", name)
	}
	return regions
}

// ofExample reports whether an example's program, which has its own test,
// contains the text.
func ofExample(t *testing.T, text string) bool {
	t.Helper()
	programs, err := filepath.Glob(filepath.Join(root, "examples", "*", "main.go"))
	require.NoError(t, err)
	return slices.ContainsFunc(programs, func(name string) bool {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		return strings.Contains(string(data), text)
	})
}

// TestMain fails if no test used a block: each block that is not Go code must
// run, or have a mark with a reason. It does not check that if only some tests
// ran.
func TestMain(m *testing.M) {
	// guide: guides/program.md
	process.Main() // of ctxperm/process: the first line of main
	// end of guide
	if as := os.Getenv(asServer); as != "" {
		actAs(as)
		return
	}
	flag.Parse()
	code := pgtest.Run(m)
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	if only := flag.Lookup("test.run").Value.String(); code == 0 && only == "" {
		for _, left := range notRun() {
			fmt.Println("FAIL: each block runs in a test:", left)
			code = 1
		}
	}
	os.Exit(code)
}

func notRun() (left []string) {
	all, err := documents()
	if err != nil {
		return []string{err.Error()}
	}
	for _, b := range all {
		switch {
		case b.notRun != "" && ran[b.String()]:
			left = append(left, b.String()+", which a test runs: remove its mark")
		case b.notRun == "" && b.lang != "go" && !ran[b.String()]:
			left = append(left, b.String())
		}
	}
	return left
}

// TestBlocksRule shows what breaks the rules for blocks.
func TestBlocksRule(t *testing.T) {
	found, err := split("a.md", "<!-- not run: why -->\n```sh\nremit\n```\n\n```sh\nremit log\n```\n\n- an item\n\n    its second paragraph\n")
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, []string{"why", ""}, []string{found[0].notRun, found[1].notRun})
	for text, says := range map[string]string{
		"Run it:\n\n    remit log\n":           "a.md:3: an indented block",
		"<!-- not run: why -->\nNo block.\n":   "a.md:2: a mark without a block",
		"<!-- not run: why -->\n\nNo block.\n": "a.md:3: a mark without a block",
		"```sh\nremit log\n":                   "the block of line 1 has no end",
	} {
		_, err := split("a.md", text)
		require.ErrorContains(t, err, says, text)
	}
}
