package egress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// ErrRefused states that a host was refused, rather than out of reach.
var ErrRefused = errors.New("refused")

// Upstream decides hosts and opens connections to them.
type Upstream interface {
	// Origin returns the canonical form of an origin as the program wrote it. It
	// returns an error for one that the proxy must not reach in any form.
	Origin(text string) (string, error)
	// Dial decides an origin in its canonical form, and opens a connection. The
	// method is that of the request. An error that wraps ErrRefused is a
	// decision.
	Dial(ctx context.Context, method, origin string) (net.Conn, error)
}

// Limits bounds a proxy. A zero field has its default.
type Limits struct {
	Connections int           // connections of the program at once; others wait. Default 64
	Hosts       int           // origins of one call. Default 256
	Header      int           // bytes of a request's header. Default 16 KiB
	HeaderTime  time.Duration // time for a request's header. Default 10 s
	Idle        time.Duration // time without a byte in either direction. Default 5 min
}

// WithDefaults returns the limits with defaults in place of zeros.
func (l Limits) WithDefaults() Limits {
	l.Connections = cmp.Or(l.Connections, 64)
	l.Hosts = cmp.Or(l.Hosts, 256)
	l.Header = cmp.Or(l.Header, 16<<10)
	l.HeaderTime = cmp.Or(l.HeaderTime, 10*time.Second)
	l.Idle = cmp.Or(l.Idle, 5*time.Minute)
	return l
}

// Proxy serves the programs of one call until Close.
type Proxy struct {
	limits   Limits
	upstream Upstream
	server   *http.Server
	hosts    hosts
	ctx      context.Context //nolint:containedctx // the life of the proxy
	stop     context.CancelFunc
	serving  sync.WaitGroup

	mu     sync.Mutex // never held across a wait
	open   map[net.Conn]bool
	closed bool
}

// Serve serves a listener, which it closes. It returns at once.
func Serve(ctx context.Context, l net.Listener, up Upstream, limits Limits) *Proxy {
	limits = limits.WithDefaults()
	p := &Proxy{limits: limits, upstream: up, open: map[net.Conn]bool{}, hosts: hosts{all: map[string]*traffic{}, max: limits.Hosts}}
	p.ctx, p.stop = context.WithCancel(ctx)
	only := new(http.Protocols)
	only.SetHTTP1(true)
	p.server = &http.Server{
		Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: limits.HeaderTime, IdleTimeout: limits.Idle,
		MaxHeaderBytes: limits.Header, DisableGeneralOptionsHandler: true, Protocols: only,
		BaseContext: func(net.Listener) context.Context { return p.ctx },
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	p.serving.Go(func() { _ = p.server.Serve(newBounded(l, limits.Connections)) })
	return p
}

// Close ends the proxy and all its connections, and waits for them. It returns
// the hosts with their final numbers.
func (p *Proxy) Close() []Host {
	p.stop()
	_ = p.server.Close() // but not connections of tunnels
	p.mu.Lock()
	p.closed = true
	for c := range p.open {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.serving.Wait()
	return p.hosts.list()
}

// Hosts returns the hosts so far.
func (p *Proxy) Hosts() []Host { return p.hosts.list() }

// keep tracks a connection, so that Close ends it. It reports whether the proxy
// is still open.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.open[c] = true
	return true
}

func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
	_ = c.Close()
}

// begin counts a request that Close must wait for.
func (p *Proxy) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.serving.Add(1)
	return true
}

// serve handles one request.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	if !p.begin() {
		return
	}
	defer p.serving.Done()
	origin, err := originOf(r)
	if err != nil {
		answer(w, http.StatusBadRequest, err.Error())
		return
	}
	to, t, err := p.dial(r, origin)
	if err != nil {
		if errors.Is(err, ErrRefused) {
			deny(w, "connect "+shown(origin)+": "+reason(err))
			return
		}
		answer(w, http.StatusBadGateway, shown(origin)+": "+err.Error())
		return
	}
	if !p.keep(to) {
		_ = to.Close()
		return
	}
	defer p.drop(to)
	to = &counted{Conn: to, traffic: t}
	if r.Method == http.MethodConnect {
		p.tunnel(w, to, t)
		return
	}
	p.forward(w, r, to, strings.TrimPrefix(t.origin, "http://"))
}

// originOf returns the origin that a request is for, as the program wrote it.
func originOf(r *http.Request) (string, error) {
	switch {
	case r.Method == http.MethodConnect:
		return "https://" + r.RequestURI, nil // the whole text, so that no part of it is lost
	case r.URL.Scheme == "https":
		return "", errors.New("an https URL needs a tunnel: send CONNECT with its host and port")
	case r.URL.Scheme != "http" || r.URL.Host == "" || r.URL.Opaque != "" || r.URL.User != nil:
		return "", errors.New("this is a proxy: send CONNECT, or a request with an absolute http URL")
	}
	return "http://" + r.URL.Host, nil
}

// dial opens the connection for a request.
func (p *Proxy) dial(r *http.Request, text string) (net.Conn, *traffic, error) {
	origin, err := p.upstream.Origin(text)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrRefused, err)
		origin = shown(text)
	}
	t := p.hosts.of(origin)
	switch {
	case t == nil:
		return nil, nil, fmt.Errorf("%w: the call has used %d hosts, which is the limit", ErrRefused, p.limits.Hosts)
	case err != nil:
		p.hosts.refuse(t, err)
		return nil, nil, err
	}
	// The request's own context ends with the program's half of the connection,
	// and the program can still wait for the response.
	to, err := p.upstream.Dial(p.ctx, r.Method, origin)
	if err != nil {
		p.hosts.refuse(t, err)
		return nil, nil, err
	}
	p.hosts.connected(t)
	return to, t, nil
}

// shown returns the text of an invalid origin, bounded, for people.
func shown(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

// reason returns why a host was refused, without the word.
func reason(err error) string { return strings.TrimPrefix(err.Error(), ErrRefused.Error()+": ") }

// deny tells the program what was refused, and why, in the body and in a header
// that programs show of a tunnel that was not made (RFC 9209).
func deny(w http.ResponseWriter, what string) {
	details := strings.Map(func(r rune) rune {
		switch {
		case r < ' ' || r > '~':
			return '?'
		case r == '"' || r == '\\':
			return '\''
		}
		return r
	}, what)
	const most = 1 << 10
	w.Header().Set("Proxy-Status", `remit; error=http_request_denied; details="`+details[:min(len(details), most)]+`"`)
	answer(w, http.StatusForbidden, "denied "+what)
}

// answer sends a reason to the program.
func answer(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Connection", "close") // no second request follows one that was refused
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, "remit: "+why)
}
