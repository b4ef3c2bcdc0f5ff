package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/egress"
	"github.com/remit-dev/remit/internal/sandbox"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
)

// Host is what a program did on one host, through the proxy of its call.
type Host struct {
	Origin      string `json:"origin"` // scheme, host and port, such as https://packages.example.com
	Connections int    `json:"connections"`
	Sent        int64  `json:"sent"`              // bytes to the host, with those of TLS
	Received    int64  `json:"received"`          // bytes from the host
	Refused     string `json:"refused,omitempty"` // why the last connection was refused or failed
	Denied      string `json:"-"`                 // why the policy, or a rule of the proxy, refused a connection; also in Result.Restrictions
}

// egressHosts are the hosts that a proxy can reach, before any decision.
func egressHosts() []perm.ResourceAccess {
	return []perm.ResourceAccess{perm.Access(perm.Connect, "https://*:*/**"), perm.Access(perm.Connect, "http://*:*/**")}
}

// hasHosts reports whether a call may connect to any host.
func hasHosts(call *callstate.Call) bool {
	bound := call.Config().MaxAccesses
	if bound == nil {
		return false
	}
	all, err := perm.NewSet(egressHosts()...)
	return err == nil && !bound().Intersect(all).IsEmpty()
}

// outlet connects a program to the hosts that its call may reach.
type outlet struct {
	call   *callstate.Call
	tc     ctxperm.ToolContext // a denial through it does not end the call
	client *web.Client

	mu    sync.Mutex // never held across a wait
	noted []string   // origins on record
	notes chan struct{}
}

// newOutlet returns the outlet of a command, or nil for one without a proxy.
func newOutlet(ctx context.Context, tc ctxperm.ToolContext, call *callstate.Call, cmd Cmd) (*outlet, error) {
	if !cmd.Egress || !hasHosts(call) {
		return nil, nil //nolint:nilnil // no proxy is no error
	}
	if call.Config().Class == effect.Pure {
		return nil, fmt.Errorf("run: %w: a program that reaches hosts can have effects there, but the call is declared pure", ctxperm.ErrInvalid)
	}
	client, err := ctxperm.DriverOf[*web.Client](ctx, tc)
	if errors.Is(err, ctxperm.ErrNoDriver) {
		err = fmt.Errorf("run: the program may reach hosts: %w; make one with web.New, and give it to the runtime with agent.Driver", err)
	}
	if err != nil {
		return nil, err
	}
	return &outlet{call: call, tc: contexts.New(call.Spared()), client: client, notes: make(chan struct{}, 1)}, nil
}

// Origin implements egress.Upstream.
func (o *outlet) Origin(text string) (string, error) {
	to, err := target(text)
	if err != nil {
		return "", err
	}
	return to.Resource().String(), nil
}

// target parses an origin, which must have no path and a name as its host.
func target(text string) (web.Target, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	if strings.ContainsAny(rest, "/?") {
		return web.Target{}, errors.New("a host and a port are valid, and nothing else")
	}
	if _, port, err := net.SplitHostPort(rest); scheme == "https" && (err != nil || port == "") {
		return web.Target{}, errors.New("the target of CONNECT is a host and a port")
	}
	to, err := web.ParseURL(text)
	if err != nil {
		return web.Target{}, err
	}
	if _, err := netip.ParseAddr(to.Resource().Host()); err == nil {
		return web.Target{}, errors.New("it is an address; the proxy reaches hosts only by their names")
	}
	return to, nil
}

// Dial implements egress.Upstream. The host is on record before the
// connection. The permit ends with the connection, so that the call does not
// end before it.
func (o *outlet) Dial(ctx context.Context, method, origin string) (net.Conn, error) {
	to, err := web.ParseURL(origin)
	if err != nil {
		return nil, err
	}
	a := perm.ResourceAccess{Action: perm.Connect, Resource: to.Resource().String(), Method: method}
	permit, err := ctxperm.Authorize(ctx, o.tc, a)
	if err != nil {
		return nil, fmt.Errorf("%w: %w%s", egress.ErrRefused, err, hintsOf(err))
	}
	conn, err := o.connect(ctx, permit, method, to)
	if err != nil {
		permit.End()
		if errors.Is(err, ctxperm.ErrDenied) {
			err = fmt.Errorf("%w: %w", egress.ErrRefused, err)
		}
		return nil, err
	}
	return &permitted{Conn: conn, end: permit.End}, nil
}

// hintsOf returns what the policy suggests instead of a denied access.
func hintsOf(err error) string {
	var d *callstate.DeniedError
	if !errors.As(err, &d) || len(d.Decision.Details().Hints) == 0 {
		return ""
	}
	return "; " + strings.Join(d.Decision.Details().Hints, "; ")
}

func (o *outlet) connect(ctx context.Context, permit ctxperm.Permit, method string, to web.Target) (net.Conn, error) {
	if err := o.note(ctx, to.Resource().String()); err != nil {
		return nil, fmt.Errorf("the journal could not note the host: %w", err)
	}
	if err := o.call.Config().Recorder.Host().Point(ctx, "process.dial"); err != nil {
		return nil, err
	}
	return o.client.Dial(ctx, permit, method, to)
}

// note records a host, durable before the first connection to it.
func (o *outlet) note(ctx context.Context, origin string) error {
	select {
	case o.notes <- struct{}{}: // one note at a time: each replaces the one before
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-o.notes }()
	o.mu.Lock()
	known, all := slices.Contains(o.noted, origin), slices.Clone(o.noted)
	o.mu.Unlock()
	if known {
		return nil
	}
	var n []effect.Host
	for _, one := range append(all, origin) {
		n = append(n, effect.Host{Origin: one})
	}
	if err := o.call.Note(ctx, effect.HostsNote, n); err != nil {
		return err
	}
	o.mu.Lock()
	o.noted = append(o.noted, origin)
	o.mu.Unlock()
	return nil
}

// permitted is a connection whose permit ends with it.
type permitted struct {
	net.Conn

	end func()
}

func (c *permitted) Close() error {
	defer c.end()
	return c.Conn.Close()
}

// CloseWrite passes on the end of the data.
func (c *permitted) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Conn.Close()
}

// serve starts the proxy on the listener of a program. Without a listener the
// program has no proxy.
func (o *outlet) serve(ctx context.Context, proc *sandbox.Process) (*egress.Proxy, error) {
	if o == nil || proc.Proxy() == nil {
		return nil, nil //nolint:nilnil // no proxy is no error
	}
	l, err := net.FileListener(proc.Proxy())
	if err != nil {
		return nil, fmt.Errorf("the proxy of the program: %w", err)
	}
	return egress.Serve(ctx, l, o, egress.Limits{}), nil
}

// finish ends the proxy, after the program. It records the final numbers.
func (o *outlet) finish(ctx context.Context, p *egress.Proxy) ([]Host, error) {
	if p == nil {
		return nil, nil
	}
	var all []Host
	var n []effect.Host
	var denied []effect.DeniedHost
	for _, h := range p.Close() {
		all = append(all, Host(h))
		if h.Reached() || slices.Contains(o.noted, h.Origin) {
			n = append(n, effect.Host{Origin: h.Origin, Connections: h.Connections, Sent: h.Sent, Received: h.Received})
		}
		if h.Denied != "" {
			denied = append(denied, effect.DeniedHost{Origin: h.Origin, Why: h.Denied})
		}
	}
	ctx = context.WithoutCancel(ctx)
	var err error
	if len(n) > 0 {
		err = o.call.Note(ctx, effect.HostsNote, n)
	}
	if len(denied) > 0 {
		err = errors.Join(err, o.call.Note(ctx, effect.DeniedHostsNote, denied))
	}
	return all, err
}

// RuleDeniedHost is the rule of a restriction that names a host which the
// policy, or a rule of the proxy, refused.
const RuleDeniedHost = "denied_host"

// unreached returns the restrictions of a program about hosts that it could
// not reach.
func unreached(all []Host) (out []Restriction) {
	for _, h := range all {
		switch {
		case h.Denied != "":
			out = append(out, Restriction{RuleDeniedHost, "denied connect " + plainText(h.Origin) + ": " + h.Denied})
		case h.Refused != "":
			out = append(out, Restriction{"host", "the program could not reach " + plainText(h.Origin) + ": " + h.Refused})
		}
	}
	return out
}

// sentTo adds to an error of a run what the program had sent before it.
func sentTo(err error, all []Host) error {
	var names []string
	for _, h := range all {
		if h.Connections > 0 {
			names = append(names, h.Origin)
		}
	}
	if err == nil || len(names) == 0 {
		return err
	}
	return fmt.Errorf("%w; before that, the program reached %s, and what it sent there stays sent", err, strings.Join(names, ", "))
}
