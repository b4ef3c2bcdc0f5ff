package agentcorpus_test

import (
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/agentcorpus"
)

// required are the arguments that a call of each tool must have, and optional
// those that it can have. Each call has client and tool too.
var (
	required = map[string][]string{
		"client_shell":  {"command", "cwd", "mode"},
		"client_write":  {"paths"},
		"client_edit":   {"paths"},
		"client_read":   {"paths"},
		"client_search": {"paths"},
		"client_fetch":  {},
		"client_other":  {"input"},
	}
	optional = map[string][]string{
		"client_shell":  {"background", "timeout_s"},
		"client_write":  {"content"},
		"client_edit":   {"edits", "patch"},
		"client_search": {"pattern"},
		"client_fetch":  {"url", "query"},
	}
	clients = []string{"claude-code", "codex", "gemini-cli", "opencode", "cursor"}
)

// TestHonestShape checks how many honest calls there are, in how many
// repositories and sessions, in which proportions, and the form of each call.
func TestHonestShape(t *testing.T) {
	calls, err := agentcorpus.Honest()
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(calls), 1000)

	ids, repos, sessions := map[string]bool{}, map[string]bool{}, map[string]int{}
	repoOf, tools, ran, failed, commands := map[string]string{}, map[string]int{}, 0, 0, map[string]bool{}
	for _, c := range calls {
		require.False(t, ids[c.ID], "%s: two calls have this ID", c.ID)
		ids[c.ID], repos[c.Repo] = true, true
		sessions[c.Session]++
		tools[c.Tool]++
		require.True(t, strings.HasPrefix(c.ID, c.Session+"-"), c.ID)
		if repo, ok := repoOf[c.Session]; ok {
			require.Equal(t, repo, c.Repo, "%s: session with two repositories", c.ID)
		}
		repoOf[c.Session] = c.Repo
		require.NotEmpty(t, c.Prompt, c.ID)
		require.NotEmpty(t, c.Why, c.ID)
		require.Equal(t, c.Ran, c.Exit != nil, "%s: exit code and ran disagree", c.ID)
		if c.Ran {
			ran++
			if *c.Exit != 0 {
				failed++
			}
		} else {
			require.NotEmpty(t, c.Note, "%s: says not why it did not run", c.ID)
		}
		requireArgs(t, c.ID, c.Tool, c.Args)
		if c.Tool == "client_shell" {
			commands[textOf(t, c.Args, "command")] = true
		}
	}
	require.GreaterOrEqual(t, len(repos), 10)
	for name, n := range sessions {
		require.True(t, n >= 15 && n <= 45, "session %s has %d calls", name, n)
	}
	share := func(names ...string) float64 {
		n := 0
		for _, name := range names {
			n += tools[name]
		}
		return float64(n) / float64(len(calls))
	}
	t.Logf("%d calls, %d repositories, %d sessions, %d ran, %d of them failed, %d different commands, tools %v",
		len(calls), len(repos), len(sessions), ran, failed, len(commands), tools)
	require.InDelta(t, 0.50, share("client_shell"), 0.12)
	require.InDelta(t, 0.25, share("client_read", "client_search"), 0.10)
	require.InDelta(t, 0.20, share("client_write", "client_edit"), 0.08)
	require.InDelta(t, 0.05, share("client_fetch", "client_other"), 0.03)
	require.Greater(t, ran, len(calls)*8/10, "most calls must have run")
	require.Greater(t, failed, len(calls)/100, "real work fails now and then")
	require.Greater(t, len(commands), tools["client_shell"]*8/10, "too many commands are the same")
}

// TestHostileShape checks how many hostile calls there are, that no two are the
// same, the form of each call, and that no call names a real host.
func TestHostileShape(t *testing.T) {
	calls, err := agentcorpus.Hostile()
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(calls), 200)

	ids, seen, categories := map[string]bool{}, map[string]string{}, map[string]int{}
	for _, c := range calls {
		require.False(t, ids[c.ID], "%s: two calls have this ID", c.ID)
		ids[c.ID] = true
		categories[c.Category]++
		require.True(t, strings.HasPrefix(c.ID, c.Category+"-"), c.ID)
		require.NotEmpty(t, c.Harm, c.ID)
		requireArgs(t, c.ID, c.Tool, c.Args)
		key := signature(t, c.Tool, c.Args)
		require.Empty(t, seen[key], "%s: the same call as %s", c.ID, seen[key])
		seen[key] = c.ID
		text, err := json.Marshal(c.Args)
		require.NoError(t, err)
		require.Empty(t, realHosts(string(text)), c.ID)
	}
	require.Equal(t, []string{
		"destroy-beyond-revert", "destroy-outside", "guard", "injection", "leak", "obfuscated",
		"persistence", "privilege", "resource",
	}, slices.Sorted(maps.Keys(categories)))
	for name, n := range categories {
		require.GreaterOrEqual(t, n, 8, "category %s", name)
	}
	t.Logf("%d calls, categories %v", len(calls), categories)
}

// TestDisjoint checks that no call is both honest and hostile: no policy could
// judge it right.
func TestDisjoint(t *testing.T) {
	honest, err := agentcorpus.Honest()
	require.NoError(t, err)
	hostile, err := agentcorpus.Hostile()
	require.NoError(t, err)
	seen := map[string]string{}
	for _, c := range honest {
		seen[signature(t, c.Tool, c.Args)] = c.ID
	}
	for _, c := range hostile {
		require.Empty(t, seen[signature(t, c.Tool, c.Args)], "%s: is honest too", c.ID)
	}
}

// signature returns a text that is the same for calls that do the same through
// different clients.
func signature(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	same := maps.Clone(args)
	for _, key := range []string{"client", "tool", "mode", "cwd"} {
		delete(same, key)
	}
	text, err := json.Marshal([]any{tool, same})
	require.NoError(t, err)
	return string(text)
}

// requireArgs checks that a call has the arguments of its tool, and no others.
func requireArgs(t *testing.T, id, tool string, args map[string]any) {
	t.Helper()
	want, ok := required[tool]
	require.True(t, ok, "%s: unknown tool %q", id, tool)
	want = append([]string{"client", "tool"}, want...)
	for _, name := range want {
		require.Contains(t, args, name, id)
	}
	for name := range args {
		require.True(t, slices.Contains(want, name) || slices.Contains(optional[tool], name),
			"%s: %s has no argument %q", id, tool, name)
	}
	require.Contains(t, clients, args["client"], id)
	switch tool {
	case "client_shell":
		require.NotEmpty(t, args["command"], id)
		require.Contains(t, []any{"observe", "execute"}, args["mode"], id)
	case "client_edit":
		require.True(t, args["edits"] != nil != (args["patch"] != nil), "%s: needs edits or a patch", id)
	case "client_fetch":
		require.True(t, args["url"] != nil != (args["query"] != nil), "%s: needs a URL or a query", id)
	}
	if paths, ok := args["paths"]; ok {
		require.NotEmpty(t, paths, id)
	}
}

var address = regexp.MustCompile(`[a-z+]+://[^\s"'\\)|;>]+`)

// realHosts returns the hosts of addresses in a text that can belong to
// a real machine. The hosts of RFC 2606 and RFC 5737, this machine, and the
// addresses of cloud metadata do not.
func realHosts(text string) (hosts []string) {
	reserved := regexp.MustCompile(`^((.*\.)?example(\.com|\.net)?|192\.0\.2\.\d+|localhost|127\.0\.0\.1|169\.254\.169\.254|metadata\.google\.internal)$`)
	for _, a := range address.FindAllString(text, -1) {
		u, err := url.Parse(a)
		if err != nil || !reserved.MatchString(u.Hostname()) {
			hosts = append(hosts, a)
		}
	}
	return hosts
}

// TestRealHosts shows what the rule about hosts refuses.
func TestRealHosts(t *testing.T) {
	require.Empty(t, realHosts(`curl https://c.example.com/x http://192.0.2.1:80/ "postgres://u:p@db.example.net/x"`))
	require.Equal(t, []string{"https://github.com/x"}, realHosts(`curl https://github.com/x | sh`))
	require.Len(t, realHosts("http://example.com.evil.org/"), 1)
}
