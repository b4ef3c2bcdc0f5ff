package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/mcp/gateway"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// sharedLog is a log that goroutines of the gateway write while a test reads it.
type sharedLog struct {
	mu   sync.Mutex // never held across a wait
	text strings.Builder
}

func (l *sharedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *sharedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// gatewaySetup is a workspace, a gateway and a runtime of its tools.
type gatewaySetup struct {
	t           testing.TB
	dir         string // the workspace
	state       string
	config      string
	gateway     *gateway.Gateway
	rt          *agent.Runtime
	serves      atomic.Pointer[agent.Runtime] // rt, for the goroutines of the gateway
	log         *sharedLog
	requestLock sync.Mutex
	asked       []string
	journal     journal.Journal
	policy      perm.Engine
	limits      tool.Limits
	progress    chan tool.Progress
	listen      func() // before a report is heard; optional
	scratch     string
	kept        process.SnapshotConfig
	host        host.Host
	behind      bool // servers start when the test says so
}

func newGatewaySetup(t testing.TB) *gatewaySetup {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return &gatewaySetup{t: t, dir: dir, state: t.TempDir(), log: &sharedLog{}, journal: journal.Memory(), host: host.Real(), progress: make(chan tool.Progress, 16)}
}

// server is an entry of mcpServers that starts this binary.
func (h *gatewaySetup) server(mode string, env map[string]string) string {
	h.t.Helper()
	self, err := os.Executable()
	require.NoError(h.t, err)
	all := map[string]string{"SERVER": mode, "STORE": filepath.Join(h.dir, "store.json"), "GORACE": "atexit_sleep_ms=0"}
	for name, value := range env {
		all[name] = value
	}
	raw, err := json.Marshal(map[string]any{"command": self, "env": all})
	require.NoError(h.t, err)
	return string(raw)
}

// scripted is an entry of a server that answers by lines.
func (h *gatewaySetup) scripted(lines ...string) string {
	h.t.Helper()
	path := filepath.Join(h.t.TempDir(), "script")
	all := append(lines, // the first that fits counts
		`initialize {"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"script","version":"1"}}}`,
	)
	require.NoError(h.t, os.WriteFile(path, []byte(strings.Join(all, "\n")), 0o644))
	return h.server("script", map[string]string{"SCRIPT": path})
}

const oneTool = `tools/list {"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}}`

// open starts a gateway of some servers, by name, and what is known of them.
func (h *gatewaySetup) open(servers map[string]string, known string, how ...func(*gateway.Options)) *gatewaySetup {
	h.t.Helper()
	var list []string
	for name, entry := range servers {
		list = append(list, fmt.Sprintf("%q: %s", name, entry))
	}
	if known == "" {
		known = "{}"
	}
	h.config = `{"mcpServers": {` + strings.Join(list, ",\n") + `}, "remit": {"servers": ` + known + `}}`
	h.begin(how...)
	return h
}

// begin starts a gateway and a runtime, as another process would.
func (h *gatewaySetup) begin(how ...func(*gateway.Options)) {
	h.t.Helper()
	c, err := config.Parse("gateway.json", []byte(h.config), os.LookupEnv)
	require.NoError(h.t, err)
	programs, err := process.New(process.Config{Scratch: h.scratch})
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = programs.Close() })
	o := gateway.Options{
		State: h.state, Log: slog.New(slog.NewTextHandler(h.log, nil)), Roots: map[string]string{"workspace": h.dir}, Sandbox: programs,
		OnToolsChanged: func(tools []tool.Tool) {
			if rt := h.serves.Load(); rt != nil {
				if err := rt.SetTools(append(builtin.Files(), tools...)...); err != nil {
					panic(err)
				}
			}
		},
	}
	for _, f := range how {
		f(&o)
	}
	h.gateway, err = gateway.Open(h.t.Context(), c, o)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { require.NoError(h.t, h.gateway.Close()) })
	if !o.Lazy && !h.behind {
		h.gateway.Start()
		h.gateway.Await(h.t.Context())
	}
	opts := []agent.Option{
		agent.Tools(builtin.Files()...), agent.Tools(h.gateway.Tools()...), agent.Root("workspace", h.dir), agent.Journal(h.journal), agent.Driver(programs),
		agent.Log(slog.New(slog.DiscardHandler)), agent.Policy(perm.EngineFunc(h.decide)), agent.Limits(h.limits), agent.Host(h.host),
		agent.OnProgress(func(p tool.Progress) {
			if h.listen != nil {
				h.listen()
			}
			select {
			case h.progress <- p:
			default: // it was heard already
			}
		}),
	}
	if h.policy != nil {
		opts = append(opts, agent.Policy(h.policy))
	}
	if h.kept.Dir == "" {
		h.kept.Dir = filepath.Join(h.state, "kept")
	}
	kept, err := process.NewSnapshotter(h.kept)
	require.NoError(h.t, err)
	h.rt, err = agent.New(append(opts, agent.Driver(kept))...)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = h.rt.Close() })
	h.serves.Store(h.rt)
}

func (h *gatewaySetup) decide(_ context.Context, r perm.Request) (perm.Decision, error) {
	h.requestLock.Lock()
	defer h.requestLock.Unlock()
	h.asked = append(h.asked, fmt.Sprintf("%s %s %s", r.Purpose, r.Access.Action, uri(r.Access.Resource)))
	return perm.NewDecision(perm.Allow, perm.Details{}), nil
}

func uri(f perm.ResourceFacts) string {
	raw, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func (h *gatewaySetup) session() *agent.Session {
	h.t.Helper()
	s, err := h.rt.Session(h.t.Context(), perm.Principal{ID: "coder"})
	require.NoError(h.t, err)
	return s
}

func (h *gatewaySetup) txn() *agent.Txn {
	h.t.Helper()
	tx, err := h.session().Begin(h.t.Context())
	require.NoError(h.t, err)
	return tx
}

// call makes one call in a transaction of its own.
func (h *gatewaySetup) call(name string, args tool.Args) tool.Outcome {
	h.t.Helper()
	tx := h.txn()
	out, err := tx.Invoke(h.t.Context(), name, args)
	if err != nil {
		_, _ = tx.Revert(h.t.Context(), revert.Options{}) // what is left of it the outcome says
		return out
	}
	require.NoError(h.t, tx.Commit(h.t.Context()))
	return out
}

// store writes what the server with a memory has.
func (h *gatewaySetup) put(name, content string) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(filepath.Join(h.dir, name), []byte(content), 0o644))
}

func (h *gatewaySetup) get(name string) string {
	h.t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.dir, name))
	if os.IsNotExist(err) {
		return "(none)"
	}
	require.NoError(h.t, err)
	return string(raw)
}

func filesTools() []tool.Tool { return builtin.Files() }

// unknownElsewhere are the reasons of a report that say that effects outside the roots are unknown.
func unknownElsewhere(rep revert.Report) (why []string) {
	for _, i := range rep.NotReverted() {
		if i.Outcome == effect.Unknown {
			why = append(why, i.Resource+": "+i.Why)
		}
	}
	return why
}
