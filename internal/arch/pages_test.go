package arch_test

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxWords bounds the words of a page, without tables and code.
var maxWords = map[string]int{
	"README.md": 1200, "CHANGELOG.md": 300, "docs/README.md": 300,

	"docs/tutorial/first-revert.md": 900, "docs/tutorial/first-tool.md": 1000, "docs/tutorial/first-gateway.md": 1000,

	"docs/guides/policies.md": 1500, "docs/guides/policy-recipes.md": 1500, "docs/guides/approval.md": 800, "docs/guides/undo.md": 1000, "docs/guides/recover.md": 800,
	"docs/guides/gateway.md": 1200, "docs/guides/gateway-login.md": 700, "docs/guides/connect.md": 700, "docs/guides/coding-agents.md": 700, "docs/guides/serve.md": 800,
	"docs/guides/embed-mcp.md": 600, "docs/guides/define.md": 600, "docs/guides/settings.md": 600, "docs/guides/compose.md": 600,
	"docs/guides/state.md": 600, "docs/guides/feedback.md": 600, "docs/guides/program.md": 700, "docs/guides/exec.md": 500, "docs/guides/console.md": 700, "docs/guides/database.md": 800,
	"docs/guides/http.md": 600, "docs/guides/secrets.md": 600, "docs/guides/filters.md": 700, "docs/guides/visibility.md": 800,
	"docs/guides/loop.md": 700, "docs/guides/wire.md": 700, "docs/guides/frameworks.md": 700, "docs/guides/handle.md": 500,
	"docs/guides/journal.md": 500, "docs/guides/engine.md": 500, "docs/guides/grade.md": 700, "docs/guides/revert-tool.md": 700, "docs/guides/seed.md": 300,

	"docs/explanation/design.md": 3500, "docs/explanation/rationale.md": 3600, "docs/explanation/threat-model.md": 2000,
	"docs/explanation/claimed.md": 400, "docs/explanation/limitations.md": 1500,
}

// maxPageWords bounds each page that maxWords does not name.
const maxPageWords = 2100

// TestPages checks each page below docs: it says what it is for (a reference
// page by its title), its index leads to it, its links lead to headings that
// exist, and it is not too long.
func TestPages(t *testing.T) {
	pages := map[string]string{}
	for _, s := range tree(t) {
		if path.Ext(s.path) == ".md" && (strings.HasPrefix(s.path, "docs/") || path.Dir(s.path) == ".") {
			pages[s.path] = s.text
		}
	}
	require.Greater(t, len(pages), 60)
	for name := range maxWords {
		require.Contains(t, pages, name, "maxWords names a page that does not exist")
	}
	report(t, pagesWithDeadLinks(pages))
}

var (
	fenced   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fragment = regexp.MustCompile(`\]\(([^)#\s]*)#([^)\s]+)\)`)
)

func pagesWithDeadLinks(pages map[string]string) (broken []string) {
	for name, text := range pages {
		prose := fenced.ReplaceAllString(text, "")
		most := maxPageWords
		if n, named := maxWords[name]; named {
			most = n
		}
		if n := wordCount(prose); n > most {
			broken = append(broken, fmt.Sprintf("%s has %d words without tables and code, and may have %d: move what is not of its purpose to another page", name, n, most))
		}
		if strings.Count(name, "/") == 2 {
			if !strings.Contains(pages["docs/README.md"], "("+strings.TrimPrefix(name, "docs/")+")") {
				broken = append(broken, name+": docs/README.md does not lead to it")
			}
			if lead, _, _ := strings.Cut(prose, "\n## "); !strings.HasPrefix(name, "docs/reference/") && wordCount(strings.Join(strings.Split(lead, "\n")[1:], "\n")) == 0 {
				broken = append(broken, name+": say in the first sentence what the page is for")
			}
		}
		for _, m := range fragment.FindAllStringSubmatch(codeSpan.ReplaceAllString(prose, ""), -1) {
			to := name
			if m[1] != "" {
				to = path.Join(path.Dir(name), m[1])
			}
			if there, known := pages[to]; known && !slices.Contains(anchors(there), m[2]) {
				broken = append(broken, fmt.Sprintf("%s leads to %s#%s, which has no such heading", name, to, m[2]))
			}
		}
	}
	slices.Sort(broken)
	return broken
}

// wordCount counts the words outside tables.
func wordCount(text string) (n int) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "|") {
			n += len(strings.Fields(line))
		}
	}
	return n
}

// anchors returns the fragments of a page's headings, as GitHub makes them.
func anchors(text string) (all []string) {
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		plain := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(strings.ToLower(m[1]), "$1")
		plain = regexp.MustCompile(`[^\p{L}\p{N}\- _]`).ReplaceAllString(plain, "")
		all = append(all, strings.ReplaceAll(plain, " ", "-"))
	}
	return all
}

func TestPagesRule(t *testing.T) {
	index := "# Index\n\n[a](guides/a.md) [long](guides/long.md)\n"
	good := "# Do a\n\nThis guide does `a`.\n\n## The plain form of `tools/call`\n\n```sh\n# no heading\n```\n\n[b](#the-plain-form-of-toolscall)\n"
	require.Empty(t, pagesWithDeadLinks(map[string]string{"docs/README.md": index, "docs/guides/a.md": good}))
	require.Equal(t, []string{
		"docs/guides/a.md leads to docs/guides/a.md#no-heading, which has no such heading",
		"docs/guides/b.md: docs/README.md does not lead to it",
		"docs/guides/b.md: say in the first sentence what the page is for",
		"docs/guides/long.md has 2103 words without tables and code, and may have 2100: move what is not of its purpose to another page",
	}, pagesWithDeadLinks(map[string]string{
		"docs/README.md": index, "docs/guides/a.md": good + "[c](a.md#no-heading)\n", "docs/guides/b.md": "# Do b\n\n## Begin\n\nText.\n",
		"docs/guides/long.md": "# Be long\n\n| a | b |\n" + strings.Repeat("word ", 2100) + "\n",
	}))
}
