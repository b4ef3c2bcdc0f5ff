package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// HTTPOptions configure how clients reach a Server over HTTP. The zero
// HTTPOptions are the defaults: only the names of this machine's loopback
// interface.
type HTTPOptions struct {
	// Hosts are further names or addresses, without a port, that requests can
	// be addressed to. They keep out a web page that resolves its own name to
	// this machine.
	Hosts []string
	// Origins are the origins of web pages that may call, such as
	// https://example.com, beside the server's own.
	Origins []string

	MaxBody               int64         // bytes of one request; default 4 MiB
	MaxBufferedBodies     int64         // bytes of all requests over 64 KiB in memory; default 64 MiB. One session can use two bodies of MaxBody
	ReadTimeout           time.Duration // time for a request to arrive; default 10 seconds
	MaxRequests           int           // open at once, streams included; default 16,384. The server rejects more
	MaxRequestsPerSession int           // of one session at once, streams included; default 128. The server rejects more
	IdleTimeout           time.Duration // after which an idle connection of an older revision ends; default 30 minutes
}

func (o HTTPOptions) withDefaults() HTTPOptions {
	if o.MaxBody <= 0 {
		o.MaxBody = 4 << 20
	}
	if o.MaxBufferedBodies <= 0 {
		o.MaxBufferedBodies = 64 << 20
	}
	o.MaxBufferedBodies = max(o.MaxBufferedBodies, o.MaxBody)
	for _, d := range []struct {
		of       *time.Duration
		standard time.Duration
	}{{&o.ReadTimeout, 10 * time.Second}, {&o.IdleTimeout, 30 * time.Minute}} {
		if *d.of <= 0 {
			*d.of = d.standard
		}
	}
	for _, n := range []struct {
		of       *int
		standard int
	}{{&o.MaxRequests, 16384}, {&o.MaxRequestsPerSession, 128}} {
		if *n.of <= 0 {
			*n.of = n.standard
		}
	}
	return o
}

// httpHandler receives every request.
type httpHandler struct {
	s     *Server
	opts  HTTPOptions
	cross *http.CrossOriginProtection
	slots chan struct{}
	room  byteQuota
	next  http.Handler
}

// Handler serves both transports on one URL: that of revision 2026-07-28, in
// which each request is independent, and that of the older ones, which keep a
// connection. Each request proves its session by the token of
// agent.Session.Token, as Authorization: Bearer.
func (s *Server) Handler(opts HTTPOptions) (http.Handler, error) {
	opts = opts.withDefaults()
	d := &httpHandler{s: s, opts: opts, cross: http.NewCrossOriginProtection(), slots: make(chan struct{}, opts.MaxRequests), room: newByteQuota(opts.MaxBufferedBodies)}
	for _, origin := range opts.Origins {
		if err := d.cross.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("mcp: origin: %w", err)
		}
	}
	get := func(*http.Request) *sdk.Server { return s.sdk }
	each := sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: opts.MaxBody,
		DisableLocalhostProtection: true, // httpHandler checks the name itself, also behind a proxy
	})
	kept := sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		SessionTimeout: opts.IdleTimeout, MaxRequestBodyBytes: opts.MaxBody, DisableLocalhostProtection: true,
	})
	// By the TokenInfo, the SDK lets only the bearer that began an
	// Mcp-Session-Id use it.
	d.next = auth.RequireBearerToken(tokenInfo, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(routeByRevision(each, kept))
	return d, nil
}

func (d *httpHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !d.checkHost(r.Host) {
		http.Error(w, "this server is not reached by that name", http.StatusForbidden)
		return
	}
	if d.cross.Check(r) != nil || !d.checkOrigin(r) {
		http.Error(w, "web pages of that origin may not call", http.StatusForbidden)
		return
	}
	st, err := d.s.sessionOf(r)
	switch {
	case errors.Is(err, agent.ErrUnknownToken):
		challenge := "Bearer"
		if r.Header.Get("Authorization") != "" {
			challenge += ` error="invalid_token"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
		http.Error(w, "a token of a session is needed, as Authorization: Bearer", http.StatusUnauthorized)
		return
	case errors.Is(err, revert.ErrBusy):
		w.Header().Set("Retry-After", "5")
		http.Error(w, "the session is in use by another process", http.StatusServiceUnavailable)
		return
	case errors.Is(err, revert.ErrOtherNode):
		http.Error(w, "the files of the session belong to another node", http.StatusMisdirectedRequest)
		return
	case errors.Is(err, tool.ErrDenied):
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", error_description="the grant of the session has ended"`)
		http.Error(w, canon.Printable(err.Error(), 512), http.StatusUnauthorized)
		return
	case err != nil:
		d.s.opts.Log.Error("a session cannot be read", "error", err)
		http.Error(w, "the session cannot be read", http.StatusInternalServerError)
		return
	}
	defer d.s.sessions.leave(st)
	leave, ok := d.admit(st)
	if !ok {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests at once", http.StatusTooManyRequests)
		return
	}
	defer leave()
	if answered(r) {
		defer d.s.traffic.enter()()
	}
	body, done, ok := d.readBody(w, r, st)
	if !ok {
		return
	}
	defer done()
	if d.s.serveFast(w, r, st, body) {
		return
	}
	w, r, end := streams(w, r, body)
	defer end()
	d.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), authKey{}, st)))
}

// answered reports whether a request ends by itself. An event stream does not.
func answered(r *http.Request) bool {
	return r.Method == http.MethodPost && r.Header.Get("Mcp-Method") != methodListen
}

// admit counts a request of a session, if the session can have one more.
func (d *httpHandler) admit(st *clientSession) (leave func(), ok bool) {
	select {
	case d.slots <- struct{}{}:
	default:
		return nil, false
	}
	if !st.acquireRequest(d.opts.MaxRequestsPerSession) {
		<-d.slots
		return nil, false
	}
	return func() {
		st.releaseRequest()
		<-d.slots
	}, true
}

// checkHost reports whether a Host header names this server.
func (d *httpHandler) checkHost(host string) bool {
	name, ok := hostname(host)
	return ok && (isLoopback(name) || slices.ContainsFunc(d.opts.Hosts, func(h string) bool { return strings.EqualFold(h, name) }))
}

// checkOrigin checks the origin of a web page, also for methods that must not
// change anything. Programs send no origin.
func (d *httpHandler) checkOrigin(r *http.Request) bool {
	for _, name := range []string{"Origin", "Sec-Fetch-Site"} {
		if len(r.Header.Values(name)) > 1 { // http.Header.Get reads only the first
			return false
		}
	}
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(d.opts.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host == r.Host
}

// hostname returns the name in a Host header: a name, an IPv4 address or an
// IPv6 address in brackets, with an optional port.
func hostname(host string) (name string, ok bool) {
	name, port, ported := strings.Cut(host, ":")
	if strings.HasPrefix(host, "[") {
		var rest string
		if name, rest, ok = strings.Cut(host[1:], "]"); !ok || !strings.Contains(name, ":") || net.ParseIP(name) == nil {
			return "", false
		}
		before := ""
		before, port, ported = strings.Cut(rest, ":")
		if before != "" {
			return "", false
		}
	}
	if !ported {
		return name, name != ""
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return name, name != "" && err == nil && n > 0
}

func isLoopback(name string) bool {
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

// sessionOf returns the client session of a request whose grant is valid. A
// revoked or expired grant is tool.ErrDenied.
func (s *Server) sessionOf(r *http.Request) (*clientSession, error) {
	st, err := s.authenticate(r)
	if err != nil {
		return nil, err
	}
	if err := st.session.CheckValid(r.Context()); err != nil {
		s.sessions.leave(st)
		return nil, err
	}
	return st, nil
}

// authenticate finds the session of the token in a request. It takes the client
// session until the request leaves it.
func (s *Server) authenticate(r *http.Request) (*clientSession, error) {
	fields := strings.Fields(r.Header.Get("Authorization"))
	if len(r.Header.Values("Authorization")) != 1 || len(fields) != 2 || !strings.EqualFold(fields[0], "bearer") {
		return nil, agent.ErrUnknownToken
	}
	digest := sha256.Sum256([]byte(fields[1]))
	id, _, _ := strings.Cut(fields[1], ".")
	if st, ok := s.sessions.take(id); ok {
		if subtle.ConstantTimeCompare(st.token[:], digest[:]) != 1 {
			s.sessions.leave(st)
			return nil, agent.ErrUnknownToken
		}
		return st, nil
	}
	in, err := s.rt.ResumeSession(r.Context(), fields[1])
	if err != nil {
		return nil, err
	}
	st, err := s.newClientSession(r.Context(), in)
	if err != nil {
		return nil, err
	}
	st.token = digest
	return s.sessions.add(st), nil
}

type authKey struct{}

// tokenInfo returns what the SDK knows of the client.
func tokenInfo(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	st, ok := ctx.Value(authKey{}).(*clientSession)
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	info := st.info()
	info.Extra[tokenLine] = ctx.Value(notifierKey{})
	return info, nil
}

// routeByRevision sends a request to the handler of its revision.
func routeByRevision(each, kept http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isLegacyRequest(r) {
			kept.ServeHTTP(w, r)
			return
		}
		each.ServeHTTP(w, r)
	})
}

// isLegacyRequest reports whether a request is of a revision that keeps a
// connection. A request that names no revision is.
func isLegacyRequest(r *http.Request) bool {
	version := r.Header.Get("MCP-Protocol-Version")
	switch {
	case r.Method != http.MethodPost, r.Header.Get("Mcp-Session-Id") != "":
		return true
	case version != "":
		return version < stateless
	case r.Header.Get("Mcp-Method") != "":
		return false
	}
	body, err := io.ReadAll(r.Body) // already in memory
	r.Body = io.NopCloser(bytes.NewReader(body))
	var says struct {
		Params struct {
			Meta struct {
				Version string `json:"io.modelcontextprotocol/protocolVersion"`
			} `json:"_meta"`
		} `json:"params"`
	}
	return err != nil || json.Unmarshal(body, &says) != nil || says.Params.Meta.Version < stateless
}
