package settings_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/secrets"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/settings"
)

const token = "ghp_0123456789abcdef"

// with are the settings of forecast as its code reads them.
type with struct {
	Region string          `json:"region"`
	Days   int             `json:"days"`
	Token  settings.Secret `json:"token"`
}

func forecast(t testing.TB, check func(context.Context, json.RawMessage) ([]string, error)) tool.Tool {
	t.Helper()
	made, err := tool.CreateWith("forecast", "Says how the weather will be.", []perm.ResourceAccess{perm.Access(perm.Use, "secret://*")},
		func(ctx context.Context, tc ctxperm.ToolContext, in string) (string, error) {
			w, err := settings.Of[with](ctx, tc)
			if err != nil {
				return "", err
			}
			key, err := w.Token.Open(ctx, tc)
			return strings.Join([]string{w.Region, key.String(), in}, " "), err
		}, tool.Effect(effect.Pivot), func(s *tool.Spec) {
			s.CheckSettings = check
			s.Settings = tool.Params{
				{Name: "region", Type: "string", Enum: []any{"eu", "us"}, Default: "eu", Description: "Where to look."},
				{Name: "days", Type: "integer", Default: 3},
				{Name: "token", Type: "string", Secret: true, Required: true, Description: "Of the weather service."},
			}
		})
	require.NoError(t, err)
	return made
}

func read(t testing.TB, layer settings.Layer, text string) settings.File {
	t.Helper()
	f, err := settings.Read(layer, string(layer)+".json", []byte(text))
	require.NoError(t, err)
	return f
}

const locksRegion = `{"schemaVersion": 1, "by": "ops", "tools": {"forecast": {"region": "us"}}}`

const setsToken = `{
  "schemaVersion": 1,
  "tools": {"forecast": {"token": "secret://weather", "days": 5}}
}`

func TestLayers(t *testing.T) {
	from := settings.Sources{Locked: read(t, settings.Locked, locksRegion), User: read(t, settings.User, setsToken)}
	tools, all, err := settings.Resolve(t.Context(), from, forecast(t, nil))
	require.NoError(t, err)
	require.Equal(t, []settings.Status{{
		Tool: "forecast", Configured: true, Problems: []settings.Problem{}, Warnings: []string{}, Digest: tools[0].SettingsDigest(),
		Values: []settings.Value{
			{Name: "region", Value: json.RawMessage(`"us"`), Layer: settings.Locked, By: "ops", At: "locked.json:1:68"},
			{Name: "days", Value: json.RawMessage(`5`), Layer: settings.User, At: "user.json:3:63"},
			{Name: "token", Value: json.RawMessage(`"secret://weather"`), Layer: settings.User, At: "user.json:3:35"},
		},
	}}, all)
	require.JSONEq(t, `{"region":"us","days":5,"token":"secret://weather"}`, string(tools[0].Settings().OrEmpty()))
	require.Empty(t, tools[0].NotConfiguredReason())
	require.Equal(t, forecast(t, nil).Digest(), tools[0].Digest(), "the declaration is the same")
}

func TestWhatIsWrongWithSettings(t *testing.T) {
	check := func(_ context.Context, raw json.RawMessage) ([]string, error) {
		var w with
		require.NoError(t, json.Unmarshal(raw, &w))
		switch w.Days {
		case 13:
			return []string{"many days"}, errors.New("13 days are too many")
		case 14:
			panic("days")
		}
		return nil, nil
	}
	for name, test := range map[string]struct {
		user, check, setting, want string
	}{
		"nothing set":       {`{}`, "required", "token", `setting "token": it is required, and not set`},
		"text for a secret": {`{"token": "` + token + `"}`, "secret", "token", `user.json:1:50: setting "token": it is secret: valid is a reference such as "secret://name", never the secret itself`},
		"number for it":     {`{"token": 1}`, "secret", "token", "never the secret itself"},
		"a whole store":     {`{"token": "secret://*"}`, "secret", "token", "never the secret itself"},
		"no such secret":    {`{"token": "secret://other"}`, "secret", "token", `there is no secret of this name; there is weather`},
		"wrong type":        {`{"token": "secret://weather", "days": "` + token + `"}`, "schema", "days", `user.json:1:78: setting "days": it is a string, want an integer`},
		"not one of them":   {`{"token": "secret://weather", "region": "` + token + `"}`, "locked", "region", `user.json:1:80: setting "region": it is locked by ops (locked.json:1:68), and cannot be set to anything else`},
		"misspelt":          {`{"token": "secret://weather", "dais": 1}`, "unknown", "dais", `the tool has no such setting; did you mean "days"?`},
		"its own check":     {`{"token": "secret://weather", "days": 13}`, "own", "", "the tool's own check: 13 days are too many"},
		"it panics":         {`{"token": "secret://weather", "days": 14}`, "own", "", "the tool's own check: it panicked (string)"},
	} {
		t.Run(name, func(t *testing.T) {
			from := settings.Sources{
				Locked: read(t, settings.Locked, locksRegion), Secrets: []string{"weather"},
				User: read(t, settings.User, `{"schemaVersion":1,"tools":{"forecast":`+test.user+`}}`),
			}
			tools, all, err := settings.Resolve(t.Context(), from, forecast(t, check))
			require.NoError(t, err)
			require.False(t, all[0].Configured)
			require.Len(t, all[0].Problems, 1)
			require.Equal(t, test.check, all[0].Problems[0].Check)
			require.Equal(t, test.setting, all[0].Problems[0].Setting)
			require.Contains(t, all[0].Problems[0].String(), test.want)
			require.Equal(t, all[0].Problems[0].String(), tools[0].NotConfiguredReason())
			said, err := json.Marshal(all)
			require.NoError(t, err)
			require.NotContains(t, string(said), token)
			if test.check == "own" && name != "it panics" {
				require.Equal(t, []string{"many days"}, all[0].Warnings, "apart from errors")
			}
		})
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		layer settings.Layer
		text  string
		want  string
	}{
		"no JSON":         {settings.User, "{\n  \"tools\": nope\n}", "f.json:2:12: want a JSON value: an object, an array, a string in double quotes, a number, true, false or null"},
		"twice":           {settings.User, "{\"schemaVersion\":1,\n \"tools\":{\"a\":{\"x\":\"" + token + "\",\n \"x\":2}}}", `f.json:3:2: "x" occurs twice, want each name once`},
		"another version": {settings.User, `{"schemaVersion":2,"tools":{}}`, "f.json:1:18: this remit reads schemaVersion 1 and no other"},
		"several":         {settings.User, `{"tool":{},"by":3}`, "f.json:1:1: \"schemaVersion\" is missing\nf.json:1:1: \"tools\" is missing\nf.json:1:2: unknown member \"tool\"; did you mean \"tools\"?\nf.json:1:17: \"by\" is a number, want a string"},
		"nobody locked":   {settings.Locked, `{"schemaVersion":1,"tools":{}}`, `f.json:1:1: "by" is missing: whoever is refused is told who locked a setting`},
		"no object":       {settings.User, `{"schemaVersion":1,"tools":{"a":"` + token + `"}}`, `f.json:1:33: "a" is a string, want an object`},
		"a list":          {settings.User, `[]`, "f.json:1:1: the file is an array, want an object"},
		"another layer":   {settings.Default, `{}`, `a file of settings is of layer "locked", "user" or "preset", not "default"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := settings.Read(test.layer, "f.json", []byte(test.text))
			require.EqualError(t, err, test.want)
		})
	}
	from := settings.Sources{User: read(t, settings.User, `{"schemaVersion":1,"tools":{"forcast":{}}}`)}
	_, _, err := settings.Resolve(t.Context(), from, forecast(t, nil))
	require.EqualError(t, err, `user.json:1:39: there is no tool "forcast" that has settings; there are forecast`)
}

func TestSet(t *testing.T) {
	from := settings.Sources{Locked: read(t, settings.Locked, locksRegion)}
	tl := forecast(t, nil)
	_, err := from.Set(tl, "region", json.RawMessage(`"eu"`))
	require.ErrorIs(t, err, settings.ErrLocked)
	require.EqualError(t, err, `tool "forecast": setting "region": the setting is locked by ops (locked.json:1:68)`)
	for value, want := range map[string]string{`"` + token + `"`: "never the secret itself", `{`: "invalid JSON"} {
		_, err = from.Set(tl, "token", json.RawMessage(value))
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), token)
	}
	_, err = from.Set(tl, "colour", json.RawMessage(`1`))
	require.ErrorContains(t, err, "there is no such setting")
	from.User, err = from.Set(tl, "token", json.RawMessage(`"secret://weather"`))
	require.NoError(t, err)
	written, err := from.User.JSON()
	require.NoError(t, err)
	from.User = read(t, settings.User, string(written))
	_, all, err := settings.Resolve(t.Context(), from, tl)
	require.NoError(t, err)
	require.True(t, all[0].Configured, "%v", all[0].Problems)
	from.User, err = from.Set(tl, "token", json.RawMessage(`null`))
	require.NoError(t, err)
	_, all, err = settings.Resolve(t.Context(), from, tl)
	require.NoError(t, err)
	require.False(t, all[0].Configured)
}

// configuredSetup runs calls of a configured tool.
type configuredSetup struct {
	rt *agent.Runtime
	tx *agent.Txn
}

func newConfiguredSetup(t *testing.T, opts ...agent.Option) configuredSetup {
	store, err := secrets.New(map[string]secrets.Source{"weather": func(context.Context) (string, error) { return token, nil }})
	require.NoError(t, err)
	rt, err := agent.New(append([]agent.Option{agent.Driver(store), agent.Log(slog.New(slog.DiscardHandler))}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	s, err := rt.Session(t.Context(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	tx, err := s.Begin(t.Context())
	require.NoError(t, err)
	return configuredSetup{rt, tx}
}

func decides(effect perm.Effect) agent.Option {
	return agent.Policy(perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		if r.Access.Action == perm.Use {
			return perm.NewDecision(perm.Allow, perm.Details{}), nil
		}
		return perm.NewDecision(effect, perm.Details{Reasons: []perm.Reason{{Text: "so"}}}), nil
	}))
}

func configured(t *testing.T, user string) tool.Tool {
	from := settings.Sources{User: read(t, settings.User, `{"schemaVersion":1,"tools":{"forecast":`+user+`}}`)}
	tools, _, err := settings.Resolve(t.Context(), from, forecast(t, nil))
	require.NoError(t, err)
	return tools[0]
}

// TestNotConfiguredIsNotOffered: not listed, and a call of it is invalid and says how to
// mend it; configured it is listed and runs with its settings.
func TestNotConfiguredIsNotOffered(t *testing.T) {
	d := newConfiguredSetup(t, decides(perm.Allow), agent.Tools(forecast(t, nil)))
	s, err := d.rt.Session(t.Context(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	shown, err := s.Tools(t.Context())
	require.NoError(t, err)
	require.Empty(t, shown)
	out, err := d.tx.Invoke(t.Context(), "forecast", "today")
	require.ErrorIs(t, err, tool.ErrInvalid)
	require.Equal(t, "tool forecast is not configured: it has no settings yet (remit tools --why forecast says what is missing)", out.Error.Why)

	require.NoError(t, d.rt.SetTools(configured(t, `{"days":1}`)))
	out, err = d.tx.Invoke(t.Context(), "forecast", "today")
	require.ErrorIs(t, err, tool.ErrInvalid)
	require.Contains(t, out.Error.Why, `setting "token": it is required, and not set`)

	require.NoError(t, d.rt.SetTools(configured(t, `{"token":"secret://weather"}`)))
	shown, err = s.Tools(t.Context())
	require.NoError(t, err)
	require.Len(t, shown, 1)
	out, err = d.tx.Invoke(t.Context(), "forecast", "today")
	require.NoError(t, err)
	require.Equal(t, "eu secret://weather today", out.Text)

	_, call, err := revert.LoadCall(t.Context(), d.rt.Journal(), out.Call)
	require.NoError(t, err)
	require.Equal(t, shown[0].SettingsDigest(), call.Tool.Settings)
	for e, err := range d.rt.Journal().Entries(t.Context(), journal.Query{}) {
		require.NoError(t, err)
		require.NotContains(t, string(e.Body), token)
	}
}

// TestAnApprovalIsForTheSettings: what was approved with other settings is asked again.
func TestAnApprovalIsForTheSettings(t *testing.T) {
	for later, same := range map[string]bool{`{"token":"secret://weather"}`: true, `{"token":"secret://weather","region":"us"}`: false} {
		d := newConfiguredSetup(t, decides(perm.Ask), agent.SuspendForApproval(), agent.Tools(configured(t, `{"token":"secret://weather"}`)))
		out, err := d.tx.Invoke(t.Context(), "forecast", "today")
		require.ErrorIs(t, err, tool.ErrPending)
		_, err = d.rt.RememberApproval(t.Context(), agent.Answer{Call: out.Call, Approved: true, By: "kim"}, ctxperm.RememberScope{Always: true})
		require.NoError(t, err)
		require.NoError(t, d.rt.SetTools(configured(t, later)))
		_, err = d.tx.Resume(t.Context(), out.Call)
		require.Equal(t, same, err == nil, later)
		_, err = d.tx.Invoke(t.Context(), "forecast", "today")
		require.Equal(t, same, err == nil, later)
	}
}

func TestAHeldCallIsReleasedWithItsSettings(t *testing.T) {
	for later, same := range map[string]bool{`{"token":"secret://weather"}`: true, `{"token":"secret://weather","region":"us"}`: false, `{}`: false} {
		d := newConfiguredSetup(t, decides(perm.Hold), agent.Tools(configured(t, `{"token":"secret://weather"}`)))
		out, err := d.tx.Invoke(t.Context(), "forecast", "today")
		require.NoError(t, err)
		require.Equal(t, tool.StatusHeld, out.Status)
		require.NoError(t, d.rt.SetTools(configured(t, later)))
		err = d.tx.Commit(t.Context())
		require.Equal(t, same, err == nil, "%s: %v", later, err)
		if !same {
			require.ErrorIs(t, err, agent.ErrNotReleased)
		}
	}
}

func TestOutsideOfACall(t *testing.T) {
	_, err := settings.Of[with](t.Context(), ctxperm.ToolContext{})
	require.ErrorIs(t, err, ctxperm.ErrClosed)
	_, err = settings.Secret{}.Open(t.Context(), ctxperm.ToolContext{})
	require.ErrorIs(t, err, ctxperm.ErrInvalid)
	var kept ctxperm.ToolContext
	bare, err := tool.CreateWith("bare", "Has no settings.", nil, func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
		kept = tc
		_, err := settings.Of[with](ctx, tc)
		return "", err
	}, tool.Pure())
	require.NoError(t, err)
	wrong, err := configured(t, `{"token":"secret://weather"}`).Modify(func(s *tool.Spec) {
		s.Name = "wrong"
		s.Execute = func(ctx context.Context, tc ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
			_, err := settings.Of[struct{ Region int }](ctx, tc)
			return tool.Result{}, err
		}
	})
	require.NoError(t, err)
	require.NotEmpty(t, wrong.NotConfiguredReason(), "another declaration was never configured")
	wrong, _, err = wrong.Configure(t.Context(), json.RawMessage(`{"token":"secret://weather"}`))
	require.NoError(t, err)
	d := newConfiguredSetup(t, decides(perm.Allow), agent.Tools(bare, wrong))
	out, err := d.tx.Invoke(t.Context(), "bare", "x")
	require.Error(t, err)
	require.Contains(t, out.Error.Why, "the tool has no settings")
	out, err = d.tx.Invoke(t.Context(), "wrong", "x")
	require.Error(t, err)
	require.Contains(t, out.Error.Why, "settings: invalid JSON")
	_, err = settings.Of[with](t.Context(), kept)
	require.ErrorIs(t, err, ctxperm.ErrClosed, "the call has ended")
}

func TestVersionsHaveSettingsOfTheirOwn(t *testing.T) {
	version := func(v string) tool.Tool {
		made, err := forecast(t, nil).Modify(func(s *tool.Spec) { s.Version = v })
		require.NoError(t, err)
		return made
	}
	from := settings.Sources{User: read(t, settings.User,
		`{"schemaVersion":1,"tools":{"forecast":{"token":"secret://a"},"forecast@2":{"token":"secret://b"}}}`)}
	tools, _, err := settings.Resolve(t.Context(), from, version("1"), version("2"))
	require.NoError(t, err)
	require.Contains(t, string(tools[0].Settings().OrEmpty()), "secret://a")
	require.Contains(t, string(tools[1].Settings().OrEmpty()), "secret://b")
}
