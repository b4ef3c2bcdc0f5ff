package agent_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

const allowEverything = "package remit\nallow contains \"everything\"\n"

func load(t *testing.T, text string) (*rego.Engine, error) {
	return rego.New(rego.Options{Modules: map[string]string{"policy.rego": text}, Timeout: time.Minute})
}

func mustLoad(t *testing.T, o rego.Options) *rego.Engine {
	e, err := rego.New(o)
	require.NoError(t, err)
	return e
}

// writes invokes one write under an engine, and reports how it ended and whether
// the file is there.
func writes(t *testing.T, ctx context.Context, e perm.Engine) (tool.Outcome, bool) {
	dir := t.TempDir()
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Policy(e))
	out, err := begin(t, newSession(t, rt)).Invoke(ctx, "file_write", tool.Args{"path": "a.txt", "content": "hi"})
	require.Equal(t, out.Status.OK(), err == nil)
	_, err = os.Stat(filepath.Join(dir, "a.txt"))
	return out, err == nil
}

func TestControlAllowAll(t *testing.T) {
	e, err := load(t, allowEverything)
	require.NoError(t, err)
	out, there := writes(t, context.Background(), e)
	require.Equal(t, tool.StatusDone, out.Status)
	require.True(t, there)
}

// TestBadPolicyIsRefusedAtLoad: each is the control with one mistake.
func TestBadPolicyIsRefusedAtLoad(t *testing.T) {
	for name, text := range map[string]string{
		"broken":         "package remit\nallow contains \"everything\" if {\n",
		"empty":          "",
		"no rule":        "package remit\n",
		"misspelt set":   "package remit\nalow contains \"everything\"\n",
		"misspelt field": "package remit\nallow contains \"everything\" if not input.acess.action == \"delete\"\n",
		"misspelt value": "package remit\nallow contains \"everything\" if input.access.action != \"reed\"\n",
		"not a set":      "package remit\nallow := true\n",
		"network":        "package remit\nallow contains \"everything\" if http.send({\"url\": \"http://127.0.0.1\", \"method\": \"get\"})\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, text)
			require.Error(t, err)
		})
	}
	_, err := rego.New(rego.Options{})
	require.Error(t, err, "missing")
}

// TestBadPolicyAtRunTime: the policy loads, says allow, and cannot be evaluated
// to its end.
func TestBadPolicyAtRunTime(t *testing.T) {
	slow := allowEverything + "deny contains \"slow\" if { some i in numbers.range(1, 20000000); i < 0 }\n"
	for _, tc := range []struct {
		name   string
		engine rego.Options
		ctx    func() context.Context
	}{
		{"built-in error", rego.Options{Timeout: time.Minute, Modules: map[string]string{
			"p.rego": allowEverything + "deny contains \"bad\" if to_number(input.principal.id) > 1\n",
		}}, context.Background},
		{"deadline", rego.Options{Timeout: time.Millisecond, Modules: map[string]string{"p.rego": slow}}, context.Background},
		{"cancelled before", rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": allowEverything}}, func() context.Context {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return ctx
		}},
		{"conflicting values", rego.Options{Timeout: time.Minute, Modules: map[string]string{
			"p.rego": allowEverything + "f(x) := 1 if x\nf(x) := 2 if x\ndeny contains \"no\" if f(true) == 3\n",
		}}, context.Background},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, there := writes(t, tc.ctx(), mustLoad(t, tc.engine))
			require.False(t, out.Status.OK(), "%s", out.Status)
			require.False(t, there)
			require.NotZero(t, out.ExitCode())
		})
	}
	t.Run("missing", func(t *testing.T) {
		out, there := writes(t, context.Background(), &rego.SwappableEngine{})
		require.Equal(t, tool.StatusDenied, out.Status)
		require.False(t, there)
	})
}

// TestReloadInFlight swaps an allowing and a denying policy while calls run:
// each call is decided by one of them, wholly, and a denied one has no effect.
func TestReloadInFlight(t *testing.T) {
	allow := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": allowEverything}})
	deny := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": allowEverything + "deny contains \"closed\"\n"}})
	live := rego.NewSwappableEngine(allow)
	dir := t.TempDir()
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Policy(live))
	tx := begin(t, newSession(t, rt))
	stop := make(chan struct{})
	var swaps sync.WaitGroup
	swaps.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				live.Swap([]*rego.Engine{allow, deny}[rand.IntN(2)])
			}
		}
	})
	seen := map[tool.Status]int{}
	for i := range 60 {
		live.Swap([]*rego.Engine{allow, deny}[i%2]) // both decide, also where the other goroutine never gets its turn
		name := string(rune('a'+i%26)) + string(rune('a'+i/26))
		out, _ := tx.Invoke(context.Background(), "file_write", tool.Args{"path": name, "content": "x"})
		seen[out.Status]++
		_, err := os.Stat(filepath.Join(dir, name))
		switch out.Status {
		case tool.StatusDone:
			require.Equal(t, allow.Revision(), out.Decision.Revision)
			require.NoError(t, err)
		case tool.StatusDenied:
			require.Equal(t, deny.Revision(), out.Decision.Revision)
			require.ErrorIs(t, err, os.ErrNotExist)
		default:
			t.Fatalf("%s: %+v", out.Status, out.Error)
		}
	}
	close(stop)
	swaps.Wait()
	require.Equal(t, 60, seen[tool.StatusDone]+seen[tool.StatusDenied])
	require.Len(t, seen, 2, "both policies decided")
}
