//go:build linux

package killtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	database "github.com/remit-dev/remit/ctxperm/database"
	dbfile "github.com/remit-dev/remit/ctxperm/database/sqlite"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// order is the task of a process.
type order struct {
	Does  string // work, recover, revert, redo
	Dir   string // contains the workspace, the database and the state
	Shim  string // a program that is a shim; empty: no programs run
	URL   string // of the service
	Allow string // its address
	Plan  plan
	At    int    // the point at which it is killed; 0: none
	Named string // the only points that At counts; empty: all
	Trace string // file for the points; empty: none
	Trap  bool   // reports its system calls
	Goes  bool   // continues after a failed call
	Quiet bool   // prints nothing
}

const orderEnv = "REMIT_KILL_ORDER"

// killer is the real host. The process gets a real SIGKILL at its n-th point.
type killer struct {
	host.Host
	mu    sync.Mutex // held forever by the goroutine that is killed
	at    int
	named string
	seen  int
	trace *os.File
}

func (k *killer) Point(ctx context.Context, id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	name := strings.ReplaceAll(id, " ", "_")
	if k.named == "" || k.named == name {
		k.seen++
	}
	if k.trace != nil {
		_, _ = fmt.Fprintln(k.trace, name)
	}
	if k.at > 0 && k.seen == k.at {
		say("point %s", name)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // nothing after the kill may run
	}
	return k.Host.Point(ctx, id)
}

// child executes an order, and returns the exit code.
func child(text string) int {
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.run(context.Background())
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (o order) run(ctx context.Context) error {
	if o.Trap {
		if err := trap(); err != nil {
			return err
		}
	}
	k := &killer{Host: host.Real(), at: o.At, named: o.Named}
	if o.Trace != "" {
		var err error
		if k.trace, err = os.Create(o.Trace); err != nil {
			return err
		}
	}
	p, err := o.start(ctx, k)
	if err != nil {
		return err
	}
	switch o.Does {
	case "work":
		err = p.work(ctx, o.Plan)
	case "recover":
		_, err = p.rt.Recover(ctx)
	case "revert", "redo":
		err = p.all(ctx, o.Does)
	default:
		err = fmt.Errorf("nobody knows how to %q", o.Does)
	}
	return errors.Join(err, p.close())
}

// program is a running process: the test's own, or a child.
type program struct {
	order
	journal *sqlite.Journal
	rt      *agent.Runtime
	ends    []func() error
}

// start opens everything.
func (o order) start(ctx context.Context, h host.Host) (p *program, err error) {
	p = &program{order: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.journal, err = sqlite.Open(ctx, filepath.Join(o.Dir, "state")); err != nil {
		return p, err
	}
	p.ends = append(p.ends, p.journal.Close)
	db, err := database.New([]database.Kind{dbfile.Kind()}, map[string]string{"main": "sqlite:" + filepath.Join(o.Dir, "app.db")})
	if err != nil {
		return p, err
	}
	p.ends = append(p.ends, db.Close)
	opts := []agent.Option{
		agent.Host(h), agent.Journal(p.journal), agent.Log(slog.New(slog.DiscardHandler)), agent.Policy(perm.EngineFunc(decide)),
		agent.Driver(db), agent.Root("workspace", filepath.Join(o.Dir, "ws")),
		agent.Tools(builtin.Files()...), agent.Tools(builtin.Databases()...), agent.Tools(builtin.Programs()...),
	}
	for _, more := range []func() ([]agent.Option, error){o.services, o.sandbox} {
		some, err := more()
		if err != nil {
			return p, err
		}
		opts = append(opts, some...)
	}
	if p.rt, err = agent.New(opts...); err != nil {
		return p, err
	}
	p.ends = append(p.ends, p.rt.Close)
	return p, nil
}

func (p *program) close() (err error) {
	for i := range p.ends {
		err = errors.Join(err, p.ends[len(p.ends)-1-i]())
	}
	return err
}

// decide holds deferrable calls, and allows everything else.
func decide(_ context.Context, r perm.Request) (perm.Decision, error) {
	verdict := perm.Allow
	if r.Call.EffectClass == string(effect.Deferrable) {
		verdict = perm.Hold
	}
	return perm.NewDecision(verdict, perm.Details{Reasons: []perm.Reason{{Text: "everything"}}}), nil
}

func (o order) sandbox() ([]agent.Option, error) {
	if o.Shim == "" {
		return nil, nil
	}
	d, err := process.New(process.Config{Shim: o.Shim, Scratch: filepath.Join(o.Dir, "scratch")})
	return []agent.Option{agent.Driver(d)}, err
}

// services returns the tools that call the service.
func (o order) services() ([]agent.Option, error) {
	network, err := web.ParseNetwork(o.Allow)
	if err != nil {
		return nil, err
	}
	client, err := web.New(web.Options{Late: 1, Allow: []web.Network{network}})
	if err != nil {
		return nil, err
	}
	named := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`)
	tools := []tool.Tool{o.post("ping", effect.Pivot), o.post("mail", effect.Deferrable)}
	for _, c := range []builtin.HTTPCall{
		{
			Name: "keyed", Method: "POST", URL: o.URL + "/keyed", Keyed: true,
			Undo: &web.Compensation{Item: o.URL + "/keyed/{id}", Find: o.URL + "/keyed?key={key}", FindIn: "data", Replays: true},
		},
		{Name: "plain", Method: "POST", URL: o.URL + "/plain", Undo: &web.Compensation{Item: o.URL + "/plain/{id}"}},
		{Name: "change", Method: "PUT", URL: o.URL + "/keyed/old", Undo: &web.Compensation{Method: "PUT", Before: true}},
	} {
		c.Description, c.Input = "Asks the service for something.", named
		made, err := builtin.HTTPTool(c)
		if err != nil {
			return nil, err
		}
		tools = append(tools, made)
	}
	return []agent.Option{agent.Driver(client), agent.Tools(tools...)}, nil
}

// once keeps no idle connection: one would stay open as long as its process
// lives, and the service counts as quiet only without connections.
var once = http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// post returns a tool whose effect cannot be determined later.
func (o order) post(name string, class effect.Class) tool.Tool {
	made, err := tool.CreateWith(name, "Tells the service something.", nil, func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, o.URL+"/posts", nil)
		if err != nil {
			return "", tool.NoEffect(err)
		}
		r.Header.Set("X-Operation", tc.Call().Key)
		answer, err := once.Do(r)
		if err != nil {
			return "", err
		}
		return "told", answer.Body.Close()
	}, tool.Effect(class))
	if err != nil {
		panic(err)
	}
	return made
}
