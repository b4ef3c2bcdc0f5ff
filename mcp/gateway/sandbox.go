package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
	"github.com/remit-dev/remit/mcp/internal/rawresult"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// internals are what package tool hides from tool authors.
var internals = toolaccess.Of[tool.Tool, tool.Spec, tool.Registry, tool.RevertContext]()

// serverSandbox is the sandbox of one server.
type serverSandbox struct {
	driver  *process.Driver
	service process.ServerConfig
	network bool
	err     error // why the sandbox is unavailable
}

// secrets are files that a server in the sandbox cannot see before its first
// call, when the policy has decided nothing. They are those that the workspace
// policy masks. Later the policy decides.
var secrets = slices.Concat(
	masking("", ".git", ".env", ".ssh", ".aws", ".gnupg", ".kube", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd", ".git-credentials",
		"credentials", "credentials.json", "credentials.csv", "credentials.toml", ".envrc", ".dockercfg", ".env~", "%23.env%23", ".docker/config.json"),
	masking(" except "+publicFiles, ".env.*", "..env.*", "*.env"),
	masking(" except "+publicFiles+fixtures, "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*",
		"*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.ppk", "*.jks", "*.kdbx", "*.tfstate", "*.tfstate.backup",
		"*.key~", "*.key.bak", "*.key.old", "*.key.orig", "*.key.swp", "*.key.swo",
		"*.pem~", "*.pem.bak", "*.pem.old", "*.pem.orig", "*.pem.swp", "*.pem.swo"),
)

// masking returns masks of these names and everything below them, in each
// folder of each root.
func masking(except string, names ...string) (masks []string) {
	for _, name := range names {
		masks = append(masks, "file://*/**/"+name+"/**"+except)
	}
	return masks
}

const (
	publicFiles = "file://*/**/.env.dist file://*/**/.env.example file://*/**/.env.sample file://*/**/.env.template " +
		"file://*/**/ca-bundle.pem file://*/**/ca-cert.pem file://*/**/ca-certificates.pem file://*/**/ca.pem " +
		"file://*/**/cabundle.pem file://*/**/cacert.pem file://*/**/cacerts.jks file://*/**/cacerts.pem " +
		"file://*/**/cert.pem file://*/**/certificate.pem file://*/**/chain.pem file://*/**/example.env " +
		"file://*/**/fullchain.pem file://*/**/go.env file://*/**/id_dsa.pub file://*/**/id_ecdsa.pub " +
		"file://*/**/id_ed25519.pub file://*/**/id_rsa.pub file://*/**/rootca.pem file://*/**/sample.env " +
		"file://*/**/template.env file://*/**/tls-ca-bundle.pem file://*/**/truststore.jks"
	fixtures = " file://*/**/__fixtures__/** file://*/**/__tests__/** file://*/**/fixtures/** file://*/**/src/test/** " +
		"file://*/**/testdata/** file://*/**/tests/** file://*/test/**"
)

// newServerSandbox determines what a server can see. With an error it returns a
// sandbox too, in which nothing starts.
func newServerSandbox(s config.Server, o *Options) (*serverSandbox, error) {
	b := &serverSandbox{driver: o.Sandbox, network: s.Sandbox.Network}
	b.err = b.serve(s, o)
	return b, b.err
}

func (b *serverSandbox) serve(s config.Server, o *Options) error {
	if len(s.Sandbox.Roots) == 0 {
		return errors.New("it is to run in the sandbox, and works in no root")
	}
	b.service = process.ServerConfig{
		Argv: append([]string{s.Command}, s.Args...), Dir: s.Dir, Env: s.Env, Roots: map[string]string{},
		Readable: s.Sandbox.Readable, Network: s.Sandbox.Network, Masks: secrets,
	}
	for _, name := range s.Sandbox.Roots {
		b.service.Roots[name] = o.Roots[name]
	}
	if filepath.IsAbs(s.Command) {
		b.service.Readable = append(b.service.Readable, s.Command)
	}
	for name, dir := range b.service.Roots {
		if dir == "" {
			return fmt.Errorf("it is to work in root %q, which is not there; there are: %s", name, strings.Join(slices.Sorted(maps.Keys(o.Roots)), ", "))
		}
	}
	if b.driver == nil {
		return errors.New("it is to run in the sandbox, and there is no driver of programs")
	}
	return nil
}

// sandboxedProcess is a server that runs in the sandbox.
type sandboxedProcess struct{ *process.Server }

func (b sandboxedProcess) pipes() (io.WriteCloser, io.ReadCloser, io.Reader) {
	in, out, complaints := b.Pipes()
	return in, out, complaints
}

func (b sandboxedProcess) end() { b.Close() }

func (b *serverSandbox) start(ctx context.Context) (serverProcess, error) {
	if b.err != nil {
		return nil, b.err
	}
	r, err := b.driver.Serve(ctx, b.service)
	if err != nil {
		return nil, err
	}
	return sandboxedProcess{r}, nil
}

// confines says what a server lacks in the sandbox: the usual reasons why it
// does not start there.
func (b *serverSandbox) confines() string {
	switch {
	case b == nil:
		return ""
	case b.network:
		return `; in the sandbox it sees the programs of the system, its roots and what is "readable"`
	}
	return `; in the sandbox it sees the programs of the system, its roots and what is "readable", and no network, so that npx and the like fetch nothing: ` +
		"install the server, and start what was installed"
}

// spec adds what is known of each tool in the sandbox: it reaches its roots
// and, unless it has the network, nothing else.
func (b *serverSandbox) spec(s tool.Spec) tool.Spec {
	for name := range sorted(b.service.Roots) {
		for _, a := range []perm.Action{perm.Read, perm.List, perm.Write, perm.Delete} {
			if a.Changes() && s.EffectClass == effect.Pure {
				continue
			}
			s.Needs = append(s.Needs, perm.Access(a, "file://"+name+"/**"))
		}
	}
	switch {
	case b.network && s.EffectClass == effect.Reversible: // the entry says so
		s.Coverage = effect.Declared
	case b.network:
		s.Coverage, s.Observed = effect.Observed, slices.Sorted(maps.Keys(b.service.Roots))
	default:
		s.EffectClass, s.Destination = cmp.Or(s.EffectClass, effect.Reversible), cmp.Or(s.Destination, tool.NoDestination)
		if s.Verify == nil && s.EffectClass == effect.Reversible {
			s.Verify = verify.Changes
		}
	}
	return internals.InSandbox(s)
}

// inBox runs one call of a tool of a server in the sandbox.
func (m mirroredTool) inBox(ctx context.Context, tc ctxperm.ToolContext, s *upstreamConn, turn *process.ServerCall, in json.RawMessage) (tool.Result, error) {
	var parts map[string]canon.Value
	return m.u.inBox(ctx, s, turn, sandboxRequest{pure: m.entry.Class == effect.Pure, get: func() (a wire.Result, err error) {
		if parts, err = m.before(ctx, tc, s, in); err != nil {
			return a, err
		}
		a, err = m.u.call(ctx, s, m.def.name, in, facts(ctx, tc))
		refuse(ctx, err)
		return a, err
	}, failed: m.responseError, done: func(a wire.Result) error {
		if m.entry.Compensate == nil {
			return nil
		}
		return m.noteCompensation(ctx, tc, parts, a)
	}})
}

// sandboxRequest is a request to a server in the sandbox.
type sandboxRequest struct {
	pure   bool // declared read-only
	get    func() (wire.Result, error)
	failed func(wire.Result) error // converts a response with isError to an error
	done   func(wire.Result) error // runs when the writes are applied
}

// mostBegun bounds how often one call starts its server if it finds the server
// dead.
const mostBegun = 3

// begin returns the connection for a call, and the exclusive use of a server in
// the sandbox. If it returns an error, nothing was sent to the server.
func (u *upstream) begin(ctx context.Context, tc ctxperm.ToolContext, limit time.Duration) (*upstreamConn, *process.ServerCall, error) {
	early, cancel := sooner(ctx, limit)
	defer cancel()
	for n := 1; ; n++ {
		s, err := u.session(early)
		if err != nil {
			return nil, nil, tool.NoEffect(err)
		}
		if u.box == nil {
			return s, nil, nil
		}
		p, ok := s.program.(sandboxedProcess)
		if !ok {
			return nil, nil, tool.NoEffect(errors.New("the server does not run in the sandbox"))
		}
		turn, err := p.Begin(ctx, tc)
		if err == nil || n == mostBegun || ctx.Err() != nil || !s.dead() && !errors.Is(err, process.ErrServerExited) {
			return s, turn, err
		}
		s.drain() // the previous call left the server dead or busy
	}
}

// drain lets no call begin on a connection, and closes the connection when its
// calls have ended.
func (s *upstreamConn) drain() {
	s.ending.Store(true)
	go s.close()
}

// inBox runs a request with exclusive use of a server in the sandbox. The
// runtime applies what the server wrote, unless the call fails.
func (u *upstream) inBox(ctx context.Context, s *upstreamConn, turn *process.ServerCall, e sandboxRequest) (tool.Result, error) {
	turn.SetBusy(true)
	a, err := e.get()
	if err != nil {
		if ctx.Err() != nil { // the server can still process it
			s.drain()
		} else {
			turn.SetBusy(false)
		}
		return tool.Result{}, err
	}
	turn.SetBusy(false)
	rawresult.Leave(ctx, a.Object)
	if a.Failed {
		return tool.Result{}, e.failed(a)
	}
	wrote, leftOut, err := turn.End(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	if wrote > 0 && e.pure {
		return tool.Result{}, fmt.Errorf("the tool is said to only read, and changed %d files; none of it is applied", wrote)
	}
	for _, what := range leftOut {
		u.g.log.Warn("something that a server left is not applied", "server", u.cfg.Name, "what", what)
	}
	if err := e.done(a); err != nil {
		return tool.Result{}, err
	}
	return rawresult.Result(a.Object, a.Text, nil), nil
}
