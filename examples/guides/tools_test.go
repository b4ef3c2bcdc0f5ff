package guides_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/ctxperm/secrets"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/compose"
	"github.com/remit-dev/remit/tool/define"
	"github.com/remit-dev/remit/tool/filter"
	"github.com/remit-dev/remit/tool/settings"
)

// runtime returns a runtime with a workspace until the end of the test.
func runtime(t *testing.T, opts ...agent.Option) (rt *agent.Runtime, workspace string) {
	t.Helper()
	workspace = t.TempDir()
	rt, err := agent.New(append([]agent.Option{agent.Root("workspace", workspace), agent.Log(slog.New(slog.DiscardHandler))}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = rt.Close() })
	return rt, workspace
}

func session(t *testing.T, rt *agent.Runtime, opts ...agent.SessionOption) *agent.Session {
	t.Helper()
	s, err := rt.Session(t.Context(), perm.Principal{ID: "coder"}, opts...)
	require.NoError(t, err)
	return s
}

// call makes one call in its own transaction.
func call(t *testing.T, s *agent.Session, name string, in any) (out tool.Outcome, err error) {
	t.Helper()
	_, err = s.Update(t.Context(), func(tx *agent.Txn) (err error) {
		out, err = tx.Invoke(t.Context(), name, in)
		return err
	})
	return out, err
}

// open returns an engine of one module.
func open(t testing.TB, module string) *rego.Engine {
	t.Helper()
	engine, err := rego.Load(rego.Source{FS: fstest.MapFS{"policy.rego": {Data: []byte(module)}}})
	require.NoError(t, err)
	return engine
}

// writer returns a tool that writes its input into one file.
func writer(t *testing.T, name, file string) tool.Tool {
	t.Helper()
	made, err := tool.CreateWith(name, "Writes "+file+".", []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/"+file)},
		func(ctx context.Context, tc ctxperm.ToolContext, in string) (string, error) {
			f, err := files.Open(tc, "workspace")
			if err != nil {
				return "", err
			}
			return in, f.Write(ctx, file, []byte(in), files.WriteOptions{})
		}, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
	require.NoError(t, err)
	return made
}

func TestCompose(t *testing.T) {
	write, book := writer(t, "write", "page.txt"), writer(t, "book", "book.txt")
	// guide: guides/compose.md
	publish, err := compose.Chain(compose.Declaration{Name: "publish", Description: "Write the page and book it."},
		compose.Part{Tool: write}, compose.Part{Tool: book})
	// end of guide
	require.NoError(t, err)
	rt, dir := runtime(t, agent.Tools(publish))
	_, err = call(t, session(t, rt), "publish", "hello")
	require.NoError(t, err)
	for _, name := range []string{"page.txt", "book.txt"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, "hello", string(data))
	}
}

type note struct{ Path, Text string }

func TestDefine(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	definition := take(t, "guides/define.md", "json", 0)
	require.NoError(t, os.Mkdir("tools", 0o700))
	require.NoError(t, os.WriteFile("tools/note.json", []byte(definition), 0o600))
	mail := `{"schemaVersion": 1, "id": "com.example.mail", "version": "1.0.0", "implementation": "example/mail",
		"function": {"name": "mail", "description": "Sends a mail."}, "effectClass": "compensable", "compensation": {"undoVersion": "1"}}`
	require.NoError(t, os.WriteFile("tools/mail.json", []byte(mail), 0o600))
	note := func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
		var n note
		if err := json.Unmarshal(in, &n); err != nil {
			return tool.Result{}, err
		}
		f, err := files.Open(tc, "workspace")
		if err != nil {
			return tool.Result{}, err
		}
		return tool.Text("written"), f.Write(ctx, n.Path, []byte(n.Text), files.WriteOptions{})
	}
	send := func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
		return tool.Text("sent"), nil
	}
	unsend := func(context.Context, tool.RevertContext) error { return nil }
	// guide: guides/define.md
	tools, err := define.Load(os.DirFS("tools"), map[string]define.Implementation{
		"example/note": {Execute: note, Confinement: tool.Handles},
		"example/mail": {Execute: send, Revert: unsend, UndoVersion: "1"},
	})
	// end of guide
	require.NoError(t, err)
	rt, workspace := runtime(t, agent.Tools(tools...))
	_, err = call(t, session(t, rt), "note", map[string]any{"path": "a.txt", "text": "hi"})
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(workspace, "a.txt"))
	require.NoError(t, err)
	require.Equal(t, "hi", string(data))

	require.NoError(t, os.WriteFile("tools/mail.json", []byte(take(t, "guides/define.md", "json", 2)), 0o600))
	tools, err = define.Load(os.DirFS("tools"), map[string]define.Implementation{"example/note": {Execute: note, Confinement: tool.Handles}, "example/mail": {Execute: send}})
	require.NoError(t, err)
	require.Equal(t, provenance.Roles{"/to/*": provenance.Authority, "/body": provenance.Payload}, tools[0].Spec().Roles)
	require.Equal(t, map[string]provenance.Trust{"/id": provenance.Trusted}, tools[0].Spec().OutputContent.Fields)
}

type receipt struct {
	ID string `json:"id"`
}

// guide: guides/data-flow.md
type mail struct {
	To   []string `json:"to"` // no role means authority
	Body string   `json:"body" role:"content"`
}

func mailTool(send func(context.Context, ctxperm.ToolContext, mail) (receipt, error)) (tool.Tool, error) {
	return tool.CreateTyped("mail_send", "Send a mail.", nil, send, func(s *tool.Spec) {
		s.OutputContent = &provenance.Content{Fields: map[string]provenance.Trust{"/id": provenance.Trusted}}
	})
}

// end of guide

func TestMailTool(t *testing.T) {
	made, err := mailTool(func(context.Context, ctxperm.ToolContext, mail) (receipt, error) { return receipt{}, nil })
	require.NoError(t, err)
	require.Equal(t, provenance.Roles{"/body": provenance.Payload}, made.Spec().Roles)
}

func TestDefineLive(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("tools", 0o700))
	write := func(name string) {
		text := fmt.Sprintf(`{"schemaVersion": 1, "id": "com.example.%s", "version": "1.0.0", "implementation": "example/%[1]s",
			"function": {"name": "%[1]s", "description": "Says %[1]s."}, "effectClass": "pure"}`, name)
		require.NoError(t, os.WriteFile("tools/new", []byte(text), 0o600))
		require.NoError(t, os.Rename("tools/new", "tools/"+name+".json"))
	}
	says := func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
		return tool.Text("yes"), nil
	}
	implementations := map[string]define.Implementation{"example/one": {Execute: says}, "example/two": {Execute: says}}
	write("one")
	write("two")
	rt, _ := runtime(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := slog.New(slog.DiscardHandler)
	// guide: guides/define.md
	live, err := define.Open("tools", implementations, func(tools []tool.Tool) error { return rt.SetTools(tools...) })
	go live.Watch(ctx, func(changed bool, err error) {
		log.Info("the definitions were read again", "changed", changed, "error", err)
	})
	// end of guide
	require.NoError(t, err)
	out, err := call(t, session(t, rt), "two", "")
	require.NoError(t, err)
	require.Equal(t, "yes", out.Text)
}

// guide: guides/filters.md
func filtered(logger *slog.Logger, tools []tool.Tool) (*agent.Runtime, error) {
	log, logErr := filter.Log(logger)
	keys, keysErr := filter.Redact(regexp.MustCompile(`sk-\w+`))
	budget, budgetErr := filter.Budget{Session: filter.Usage{Calls: 50}}.Filter()
	cache, cacheErr := filter.Cache{}.Filter()
	if err := errors.Join(logErr, keysErr, budgetErr, cacheErr); err != nil {
		return nil, err
	}
	return agent.New(agent.Tools(tools...), agent.Filters(log, keys, budget, cache))
}

// end of guide

func TestFilters(t *testing.T) {
	tells, err := tool.Create("tell", "Tells.", func(_ context.Context, in string) (string, error) { return "the key is sk-" + in, nil }, tool.Pure())
	require.NoError(t, err)
	tools := []tool.Tool{tells}
	var written bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&written, nil))
	rt, err := filtered(logger, tools)
	require.NoError(t, err)
	defer func() { _ = rt.Close() }()
	s := session(t, rt)
	for i := range 51 {
		out, err := call(t, s, "tell", fmt.Sprint("abc", i))
		if i < 50 {
			require.NoError(t, err)
			require.NotContains(t, out.Text, "abc")
		} else {
			require.ErrorIs(t, err, tool.ErrDenied)
		}
	}
	require.Contains(t, written.String(), "tell")
}

type (
	Item struct {
		Text string `json:"text"`
	}
	List struct {
		Items []string `json:"items"`
	}
)

func TestState(t *testing.T) {
	// guide: guides/state.md
	todo, err := tool.Stateful("todo", "Keep a list of what is to be done.", nil,
		func(context.Context, ctxperm.ToolContext) (List, error) { return List{}, nil }, // the first call of a session begins with this
		func(_ context.Context, _ ctxperm.ToolContext, in Item, was List) (int, List, error) {
			was.Items = append(was.Items, in.Text)
			return len(was.Items), was, nil // the next call gets this
		},
		tool.Effect(effect.Reversible), tool.Confined(tool.Handles)) // it touches nothing else
	// end of guide
	require.NoError(t, err)
	rt, _ := runtime(t, agent.Tools(todo))
	s := session(t, rt)
	for i := range 3 {
		out, err := call(t, s, "todo", map[string]any{"text": "wash"})
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i+1), out.Text)
	}
}

func TestSettings(t *testing.T) {
	ctx, text, user := t.Context(), []byte(take(t, "guides/settings.md", "json", 0)), []byte(`{"schemaVersion": 1, "tools": {}}`)
	store, err := secrets.New(map[string]secrets.Source{"weather": func(context.Context) (string, error) { return "a long token", nil }})
	require.NoError(t, err)
	rt, _ := runtime(t, agent.Driver(store), agent.Policy(open(t, `package remit
		allow contains "all" if true`)))
	checked, region := false, ""
	reachable := func(context.Context, json.RawMessage) error { checked = true; return nil }
	weather := func(_ context.Context, in string, _ secrets.Secret) (tool.Result, error) {
		region = in
		return tool.Text("rain"), nil
	}
	// guide: guides/settings.md
	forecast, err := tool.FromSpec(tool.Spec{
		Name: "forecast", Description: "Says how the weather will be.",
		Settings: tool.Params{
			{Name: "region", Type: "string", Enum: []any{"eu", "us"}, Default: "eu"},
			{Name: "token", Type: "string", Secret: true, Required: true},
		},
		CheckSettings: func(ctx context.Context, settings json.RawMessage) (warnings []string, err error) {
			return nil, reachable(ctx, settings) // after an error the tool is not offered
		},
		Needs: []perm.ResourceAccess{perm.Access(perm.Use, "secret://*")},
		Execute: func(ctx context.Context, tc ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
			s, err := settings.Of[struct {
				Region string          `json:"region"`
				Token  settings.Secret `json:"token"`
			}](ctx, tc)
			if err != nil {
				return tool.Result{}, err
			}
			token, err := s.Token.Open(ctx, tc) // the policy decides about: use secret://NAME
			if err != nil {
				return tool.Result{}, err
			}
			return weather(ctx, s.Region, token)
		},
	})
	// end of guide
	require.NoError(t, err)
	tools, userText := []tool.Tool{forecast}, user
	require.NoError(t, resolve(ctx, rt, store, tools, text, userText, []byte(`{"schemaVersion": 1, "tags": {}, "tools": {}}`)))
	require.True(t, checked)
	_, err = call(t, session(t, rt), "forecast", "")
	require.NoError(t, err)
	require.Equal(t, "eu", region)
}

func resolve(ctx context.Context, rt *agent.Runtime, store *secrets.Store, tools []tool.Tool, lockedText, userText, presetText []byte) error {
	// guide: guides/settings.md
	locked, err := settings.Read(settings.Locked, "locked.json", lockedText)
	if err != nil {
		return err
	}
	user, err := settings.Read(settings.User, "settings.json", userText)
	if err != nil {
		return err
	}
	preset, err := settings.Read(settings.Preset, "preset.json", presetText)
	if err != nil {
		return err
	}
	from := settings.Sources{Locked: locked, User: user, Preset: preset, Secrets: store.Names()}
	tools, status, err := settings.Resolve(ctx, from, tools...)
	if err != nil {
		return err
	}
	err = rt.SetTools(tools...) // or agent.Tools(tools...) at the start
	// end of guide
	if len(status) != 1 || len(status[0].Problems) > 0 {
		return fmt.Errorf("not configured: %v", status)
	}
	return err
}
