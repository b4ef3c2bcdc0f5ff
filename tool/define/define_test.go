package define_test

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	ctxfiles "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
	"github.com/remit-dev/remit/tool/define"
	"github.com/remit-dev/remit/tool/wire"
)

var update = flag.Bool("update", false, "rewrite what the golden files expect")

// note writes a file.
func note(ctx context.Context, tc ctxperm.ToolContext, raw json.RawMessage) (tool.Result, error) {
	var in struct{ Path, Text string }
	if err := json.Unmarshal(raw, &in); err != nil {
		return tool.Result{}, tool.NoEffect(err)
	}
	folder, err := ctxfiles.Open(tc, "workspace")
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Text("noted"), folder.Write(ctx, in.Path, []byte(in.Text), ctxfiles.WriteOptions{})
}

func implementations(t testing.TB) map[string]define.Implementation {
	t.Helper()
	write, err := tool.NewRegistry(builtin.Files()...)
	require.NoError(t, err)
	builtin, ok := write.Get("file_write")
	require.True(t, ok)
	return map[string]define.Implementation{
		"example/note": {Execute: note, Confinement: tool.Handles},
		"example/mail": {
			Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
				return tool.Text("sent"), nil
			},
			Revert: func(context.Context, tool.RevertContext) error { return nil }, UndoVersion: "2",
		},
		"builtin/file_write": define.FromTool(builtin),
	}
}

const goodNote = `{
  "schemaVersion": 1,
  "id": "com.example.note",
  "version": "1.0.0",
  "implementation": "example/note",
  "icon": "note.svg",
  "visibility": ["chat"],
  "tags": ["writing"],
  "settings": {"folder": {"type": "string", "default": "."}},
  "function": {
    "name": "note",
    "description": "Writes a note.",
    "strict": true,
    "parameters": {
      "type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
      "required": ["path", "text"], "additionalProperties": false
    }
  },
  "needs": [{"action": "write", "resource": "file://workspace/{path}"}],
  "effectClass": "reversible",
  "destination": "none",
  "hints": {"idempotent": true, "timeout": "5s"},
  "sensitive": ["text"],
  "i18n": {"de": {"name": "Notiz", "description": "Schreibt eine Notiz."}}
}
`

const goodMail = `{"schemaVersion":1,"id":"com.example.mail","version":"1.0.0","implementation":"example/mail",
"function":{"name":"mail","description":"Sends a mail.","parameters":{"type":"object","properties":{"to":{"type":"string"}}}},
"effectClass":"compensable","compensation":{"undoVersion":"2"},"deprecated":"use post"}`

const goodWrite = `{"schemaVersion":1,"id":"com.example.docs","version":"1.0.0","implementation":"builtin/file_write",
"function":{"name":"docs_write","description":"Writes a page of the docs."},
"needs":[{"action":"write","resource":"file://workspace/docs/**"}]}`

func folder(texts ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i, text := range texts {
		m[string(rune('a'+i))+".json"] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func load(t testing.TB, texts ...string) []tool.Tool {
	t.Helper()
	tools, err := define.Load(folder(texts...), implementations(t), define.AllowUnused())
	require.NoError(t, err)
	return tools
}

func TestADefinitionSaysEverything(t *testing.T) {
	seen := strings.Replace(goodNote, `"tags"`, `"audience": {"capabilities": ["vision"], "confidence": 700},
  "content": {"trust": "trusted", "confidentiality": "private"}, "tags"`, 1)
	fsys := folder(seen, goodMail)
	fsys["deep/er/write.json"] = &fstest.MapFile{Data: []byte(goodWrite)}
	for _, left := range []string{".hidden.json", "_draft.json", "readme.md", ".git/x.json"} {
		fsys[left] = &fstest.MapFile{Data: []byte("no JSON")}
	}
	tools, err := define.Load(fsys, implementations(t))
	require.NoError(t, err)
	require.Len(t, tools, 3)
	s := tools[0].Spec()
	require.Equal(t, "note@1.0.0", tools[0].QualifiedName())
	require.Equal(t, provenance.Definition, s.Provenance.Kind)
	require.Equal(t, "a.json", s.Provenance.Name)
	require.Equal(t, "1.0.0", s.Provenance.Version)
	require.Equal(t, "example/note", s.Provenance.Implementation)
	require.True(t, strings.HasPrefix(s.Provenance.Digest, "sha256:"))
	require.Equal(t, tool.Display{
		Names: map[string]string{"de": "Notiz"}, Descriptions: map[string]string{"de": "Schreibt eine Notiz."},
		Icon: "note.svg", Surfaces: []string{"chat"},
	}, s.Display)
	require.Equal(t, []string{"vision"}, s.Capabilities)
	require.Equal(t, 700, s.MinProviderTrust)
	require.Equal(t, &provenance.Content{Trust: provenance.Trusted, Confidentiality: provenance.Private}, s.OutputContent)
	require.Equal(t, "5s", s.Hints.Timeout.String())
	require.Equal(t, []string{"text"}, s.Hints.Sensitive)
	require.Equal(t, effect.Reversible, s.EffectClass)
	require.Equal(t, tool.NoDestination, s.Destination)
	require.Equal(t, tool.Params{{Name: "folder", Type: "string", Default: "."}}, s.Settings)
	require.NotEmpty(t, tools[0].NotConfiguredReason())
	require.Equal(t, "Sends a mail. Deprecated: use post.", tools[1].ModelDescription())
	require.Equal(t, "docs_write", tools[2].Name())
	require.Equal(t, "deep/er/write.json", tools[2].Spec().Provenance.Name)
}

// TestOneSourceOfEveryShape: what each provider is sent comes from the file.
func TestOneSourceOfEveryShape(t *testing.T) {
	tools := load(t, goodNote, goodMail)
	for _, f := range wire.Formats() {
		a, err := wire.New(f, tools...)
		require.NoError(t, err)
		raw, err := a.Definitions()
		require.NoError(t, err)
		for _, word := range []string{`"note"`, "Writes a note.", `"path"`, `"text"`, `"required"`, `"mail"`, "Sends a mail. Deprecated: use post.", `"to"`} {
			require.Contains(t, string(raw), word, f)
		}
		require.NotContains(t, string(raw), "example/note", "the model has no use for it")
		hard, err := a.Strict().Definitions()
		require.NoError(t, err)
		changed, err := wire.New(f, load(t, strings.Replace(goodNote, "Writes a note.", "Writes it down.", 1), goodMail)...)
		require.NoError(t, err)
		other, err := changed.Strict().Definitions()
		require.NoError(t, err)
		require.Equal(t, strings.Replace(string(hard), "Writes a note.", "Writes it down.", 1), string(other), f)
	}
}

// TestWhatIsInTheDigest: what people alone see makes no other tool of it, anything else
// does. The digest of the file tells every change.
func TestWhatIsInTheDigest(t *testing.T) {
	was := load(t, goodNote)[0]
	for change, same := range map[[2]string]bool{
		{`"note.svg"`, `"pen.svg"`}:                                   true,
		{`["chat"]`, `["chat", "mail"]`}:                              true,
		{`"Notiz"`, `"Zettel"`}:                                       true,
		{"Schreibt eine Notiz.", "Notiert."}:                          true,
		{`  "tags"`, `    "tags"`}:                                    true,
		{`"default": "."`, `"default": ".", "description": "Where."`}: true,
		{`"default": "."`, `"default": "x"`}:                          false,
		{`"Writes a note."`, `"Writes it."`}:                          false,
		{`"1.0.0"`, `"1.0.1"`}:                                        false,
		{`["writing"]`, `["w"]`}:                                      false,
		{`"5s"`, `"6s"`}:                                              false,
		{`"sensitive": ["text"]`, `"sensitive": []`}:                  false,
		{`"effectClass": "reversible"`, `"effectClass": "pivot"`}:     false,
		{`"destination": "none",`, ``}:                                false,
		{`workspace/{path}`, `workspace/**`}:                          false,
		{`"idempotent": true`, `"idempotent": false`}:                 false,
		{`"effectClass"`, `"deprecated": "no", "effectClass"`}:        false,
		{`"default": "."`, `"secret": true`}:                          false,
	} {
		text := strings.Replace(goodNote, change[0], change[1], 1)
		require.NotEqual(t, goodNote, text, change)
		now := load(t, text)[0]
		require.Equal(t, same, was.Digest() == now.Digest(), "%v", change)
		require.NotEqual(t, was.Spec().Provenance.Digest, now.Spec().Provenance.Digest)
	}
}

// TestBadDefinitions holds all that is said of bad files, with line and column, against
// testdata/bad: an archive of files each, and what is wanted.
func TestBadDefinitions(t *testing.T) {
	archives, err := filepath.Glob("testdata/bad/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, name := range archives {
		t.Run(filepath.Base(name), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			require.NoError(t, err)
			fsys, want := fstest.MapFS{}, ""
			for _, f := range a.Files {
				if f.Name == "want" {
					want = string(f.Data)
					continue
				}
				fsys[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			tools, err := define.Load(fsys, implementations(t), define.AllowUnused())
			require.Error(t, err)
			require.Empty(t, tools)
			got := err.Error() + "\n"
			if *update {
				a.Files = append(a.Files[:len(a.Files)-1], txtar.File{Name: "want", Data: []byte(got)})
				require.NoError(t, os.WriteFile(name, txtar.Format(a), 0o644))
			} else {
				require.Equal(t, want, got)
			}
			require.NotContains(t, got, "hunter2", "no value is repeated")
		})
	}
}

func TestAnImplementationWithoutAFile(t *testing.T) {
	_, err := define.Load(folder(goodNote), implementations(t))
	require.EqualError(t, err, "implementation \"builtin/file_write\": no file names it\nimplementation \"example/mail\": no file names it")
	_, err = define.Load(folder(goodNote), nil, define.AllowUnused())
	require.EqualError(t, err, `a.json:5:21: there is no implementation "example/note"; there are none`)
	tools, err := define.Load(fstest.MapFS{}, nil)
	require.NoError(t, err)
	require.Empty(t, tools)
	_, err = define.Load(os.DirFS(filepath.Join(t.TempDir(), "gone")), nil)
	require.EqualError(t, err, ".: no such file or directory")
}

func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.json"), 0o755))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "link.json")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "big.json"), []byte(strings.Repeat(" ", 1<<20+1)), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "latin.json"), []byte("{\"schemaVersion\": 1, \"id\": \"\xe9\"}"), 0o644))
	_, err := define.Load(os.DirFS(dir), nil)
	require.ErrorContains(t, err, "big.json: the document is larger than the limit of 1048576 bytes")
	require.ErrorContains(t, err, "latin.json:1:29: bytes")
	require.ErrorContains(t, err, "link.json: no such file or directory")
	require.NotContains(t, err.Error(), "folder.json")
}

func TestVersionsOfADefinition(t *testing.T) {
	second := strings.Replace(goodNote, `"1.0.0"`, `"1.1.0"`, 1)
	r, err := tool.NewRegistry(load(t, goodNote, second)...)
	require.NoError(t, err)
	newest, err := r.Find("note")
	require.NoError(t, err)
	require.Equal(t, "note@1.1.0", newest.QualifiedName())
	_, err = r.Find("note@1.0.0")
	require.NoError(t, err)
}

func quiet() agent.Option { return agent.Log(slog.New(slog.DiscardHandler)) }

func allow() agent.Option {
	return agent.Policy(perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "all"}}}), nil
	}))
}

// TestADefinitionNarrows: a built-in tool under another name does what its file lets it, is
// undone as the built-in is, and cannot be declared to be more.
func TestADefinitionNarrows(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "docs"), 0o755))
	tools := load(t, goodWrite)
	rt, err := agent.New(quiet(), allow(), agent.Tools(tools...), agent.Root("workspace", dir))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	s, err := rt.Session(t.Context(), perm.Principal{ID: "coder"}, agent.ClientProfile(perm.ClientFacts{Surface: "chat"}))
	require.NoError(t, err)
	tx, err := s.Begin(t.Context())
	require.NoError(t, err)
	out, err := tx.Invoke(t.Context(), "docs_write", tool.Args{"path": "docs/a.md", "content": "x"})
	require.NoError(t, err, "%+v", out.Error)
	require.FileExists(t, filepath.Join(dir, "docs", "a.md"))
	for _, path := range []string{"a.md", "docs2/a.md"} {
		out, err = tx.Invoke(t.Context(), "docs_write", tool.Args{"path": path, "content": "x"})
		require.ErrorIs(t, err, tool.ErrInvalid, path)
		require.Contains(t, out.Error.Why, "lies outside what the tool declares to need")
		require.NoFileExists(t, filepath.Join(dir, path))
	}
	_, err = tx.Invoke(t.Context(), "docs_write", tool.Args{"path": "docs/a.md", "contents": "x"})
	require.ErrorIs(t, err, tool.ErrInvalid)
	_, err = tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(dir, "docs", "a.md"))
}
