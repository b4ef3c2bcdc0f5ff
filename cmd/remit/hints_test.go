package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policy"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
)

// wordsNotHints are texts that name a command and are no command to run: what they speak of has happened, or is explained.
var wordsNotHints = map[string]string{
	"a person can revert it: remit revert ":  "an id follows; a model reads it, wherever the journal is",
	"none yet: the first remit run makes it": "any run",
	"check --state: it is the folder that remit run was given; without it, the journal of the workspace is read": "names the flag",
	"wrote %s to %s\nchange it, then: remit policy check %s\nuse it: remit run --policy %s …\n":                  "a run that is still to be written",
	"no filter: --max-calls and --max-time of remit run and remit resume add one":                                "names flags",
	"  %s\n  remit run decided %s:\n":                               "what a run decided",
	"sandbox: by the operating system, as far as remit doctor says": "any place says the same",
	"remit show ":              "an id of place.shown follows, with the flags of the place",
	"%w: %w; see remit doctor": "of the machine, not of a place",
	"remit gateway login ":     "its --config and --state follow",
	"no process of it lives; a server, remit run or remit recover there does it": "on another node",
	"a process of it lives; if none of them takes it, remit recover there does":  "as above",
	"remit gateway":              "a name",
	"\n  remit log --state %s\n": "the state folder follows",
	"\nThere can be more differences. --json prints each whole input for remit policy eval.": "an input needs no place",
	"remit policy eval --help shows a whole one, remit policy schema all that it may hold":   "help",
	policy.SampleInput: "help",
	"remit watch  ":    "the title of the screen",
	"call it where a person can answer (agent.Approver or agent.SuspendForApproval; remit run --on-ask prompt or wait)":                      "flags of the run that was denied",
	"  %s   remit init --config %s --write: until an entry says what their tools do, calls of them are denied\n":                             "the configuration holds what it writes",
	"give it an entry with an effectClass in the gateway's configuration: remit init --config FILE --write drafts those that are missing":    "the configuration holds what it writes",
	"overwrite what changed since, and store it for remit redo: ":                                                                            "what redo is for; the command follows",
	"%q is not a tree head: write it as SIZE:sha256:DIGITS, as Head.String and remit fsck do":                                                "a form",
	"open database: %w; make one with database.New and give it to agent.Driver (remit run: --database NAME=sqlite:PATH)":                     "a flag",
	"; or a person allows it: --on-ask prompt or wait of remit run, agent.Approver or agent.SuspendForApproval":                              "flags of the run that was denied",
	"  %s   in the folder of the project, remit log lists its prompts, and remit undo reverts the newest one\n":                              "the text names the place",
	"use Linux, or remit serve with the agent's own tools off":                                                                               "a way to use remit",
	"the program reaches no host: its sandbox has no network of its own here, which a proxy needs; see remit doctor":                         "of the machine, not of a place",
	"it is in quarantine: %s; remit gateway accept %s/%s, with the --config and --state of the gateway, shows the difference and accepts it": "says which flags",
}

// placed are the commands that look for a journal, by the flag that says where it is.
func placed(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Flags().Lookup("state") != nil {
			found[strings.TrimPrefix(c.CommandPath(), "remit ")] = true
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	w := testEnv(strings.NewReader(""), io.Discard, io.Discard)
	walk(commandTree(cli.NewApp(w)))
	require.Greater(t, len(found), 15)
	return found
}

// TestHintsNamePlace: a hint leads to the journal that the command looked at. Each command of a hint is made by place.hint, which
// repeats --state or --workspace; a text that names a command itself would lead to the default place.
func TestHintsNamePlace(t *testing.T) {
	commands := placed(t)
	names := make([]string, 0, len(commands))
	for name := range commands {
		names = append(names, regexp.QuoteMeta(name))
		for flag, p := range map[string]state.Workspace{"--state '/a b'": {HintFlags: []string{"--state", "/a b"}}, "--workspace w": {HintFlags: []string{"--workspace", "w"}}} {
			require.Contains(t, p.Hint(append(strings.Fields(name), "ID")...), " "+flag)
		}
	}
	hint := regexp.MustCompile(`\bremit (` + strings.Join(names, "|") + `)\b`)
	for _, root := range []string{".", "../../agent", "../../tool", "../../revert", "../../ctxperm", "../../mcp", "../../internal", "../../perm"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if d.IsDir() && d.Name() == "conformance" {
				return fs.SkipDir
			}
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, text := range printed(t, path) {
				if hint.MatchString(text) && wordsNotHints[text] == "" {
					t.Errorf("%s: %q names a command without its place: use place.hint, or give the reason in wordsNotHints", path, text)
				}
			}
			return nil
		}))
	}
}

// printed are the texts of a file, without those of help: the fields of a command, and what a flag is for.
func printed(t *testing.T, path string) (texts []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			key, ok := n.Key.(*ast.Ident)
			return !ok || key.Name != "Long" && key.Name != "Short" && key.Name != "Use" && key.Name != "Example"
		case *ast.AssignStmt:
			f, ok := n.Lhs[len(n.Lhs)-1].(*ast.SelectorExpr)
			return !ok || f.Sel.Name != "Long"
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			return !ok || !strings.Contains(f.Sel.Name, "Var")
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				text, err := strconv.Unquote(n.Value)
				require.NoError(t, err)
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts
}
