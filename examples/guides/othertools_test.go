package guides_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// allPages returns the pages with blocks that run, and every other page for
// users and contributors.
func allPages(t *testing.T) []string {
	t.Helper()
	names, err := pages()
	require.NoError(t, err)
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/explanation/*.md", "docs/evidence/*.md", "examples/*.md", "examples/*/*.md"} {
		more, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		require.NotEmpty(t, more, pattern)
		for _, name := range more {
			if filepath.Base(name) != "README.md" || filepath.Dir(name) != root { // pages has it
				names = append(names, name)
			}
		}
	}
	return names
}

// commandLines returns the commands that a page names in code: in a sentence,
// or on a line of a block.
func commandLines(text string) (lines []string) {
	inBlock := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			inBlock = !inBlock
		case inBlock:
			command, _, _ := strings.Cut(strings.TrimPrefix(line, "$ "), " #")
			lines = append(lines, strings.TrimSpace(command))
		default:
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line, -1) {
				lines = append(lines, m[1])
			}
		}
	}
	return lines
}

// TestOtherCommands checks the commands of pages that are none of remit: a
// target of make, a package that go runs, a test that go runs, and what go doc
// shows.
func TestOtherCommands(t *testing.T) {
	shell(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	var (
		target    = regexp.MustCompile(`^(?:[A-Z_]+=\S+ )*make ([a-z-]+)`)
		run       = regexp.MustCompile(`^go run (\./[a-z/]+)$`)
		testOf    = regexp.MustCompile(`^(?:[A-Z_]+=\S+ )*go test .*-run '?\^?((?:Test|Fuzz)\w+)`)
		folder    = regexp.MustCompile(` (\./[a-z/]+)`)
		documents = regexp.MustCompile(`^go doc (\./\S+)(?: ([A-Z][\w.]*))?$`)
		found     = map[string]int{}
	)
	for _, name := range allPages(t) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, line := range commandLines(string(text)) {
			at := filepath.Base(name) + ": " + line
			if m := target.FindStringSubmatch(line); m != nil {
				require.Regexp(t, `(?m)^`+m[1]+`:`, string(makefile), at)
				found["make"]++
			}
			if m := run.FindStringSubmatch(line); m != nil {
				require.FileExists(t, filepath.Join(root, m[1], "main.go"), at)
				found["run"]++
			}
			if m := testOf.FindStringSubmatch(line); m != nil && m[1] != "TestYours" {
				in := "."
				if f := folder.FindStringSubmatch(line); f != nil {
					in = strings.TrimSuffix(f[1], "/")
				}
				require.True(t, hasTest(t, filepath.Join(root, in), m[1]), at)
				found["test"]++
			}
			if m := documents.FindStringSubmatch(line); m != nil {
				out, err := exec.Command("go", append([]string{"doc", "-C", root}, m[1:]...)...).CombinedOutput()
				require.NoError(t, err, "%s: %s", at, out)
				found["doc"]++
			}
		}
	}
	require.Greater(t, found["make"], 10)
	require.Greater(t, found["run"], 1)
	require.Greater(t, found["test"], 4)
	require.Positive(t, found["doc"])
}

// hasTest reports whether a test below a folder has a name that begins with
// name.
func hasTest(t *testing.T, dir, name string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || found || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		found = found || strings.Contains(string(text), "\nfunc "+name)
		return err
	})
	require.NoError(t, err)
	return found
}

// TestFlagsInSentences checks that some command has each flag that a page names
// without its command. docs/reference/flags.md has all of them.
func TestFlagsInSentences(t *testing.T) {
	flag := regexp.MustCompile(`(?:^|[^\w-])(--[a-z][a-z-]*)`)
	all, err := os.ReadFile(filepath.Join(root, "docs", "reference", "flags.md"))
	require.NoError(t, err)
	known, found := map[string]bool{}, 0
	for _, m := range flag.FindAllStringSubmatch(string(all), -1) {
		known[m[1]] = true
	}
	require.Greater(t, len(known), 50)
	for _, name := range allPages(t) {
		switch filepath.Join(filepath.Base(filepath.Dir(name)), filepath.Base(name)) {
		case filepath.Join("reference", "programs.md"), filepath.Join("evidence", "agent-clients.md"), filepath.Join("evidence", "undo-bench-tools.md"):
			continue // flags of the programs that it tested
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, span := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(string(text), -1) {
			if regexp.MustCompile(`^(npm|git|go|make|claude|codex|perf|cp|node)\b`).MatchString(span[1]) {
				continue
			}
			for _, m := range flag.FindAllStringSubmatch(span[1], -1) {
				require.True(t, known[m[1]], "%s: no command has %s", filepath.Base(name), m[1])
				found++
			}
		}
	}
	require.Greater(t, found, 100)
}
