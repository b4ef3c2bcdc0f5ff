package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/secrets"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
)

// Options configures a Client. The zero Options permit only the public
// internet, without credentials.
type Options struct {
	// Allow lists networks beside the public internet. The policy decides which
	// of them a call reaches, by the name or address in its URL.
	Allow []Network
	// CAs replaces the system's certificate authorities.
	CAs *x509.CertPool
	// Credentials are added to requests to their origins.
	Credentials []Credential
	// Secrets holds the values of the credentials. Pass it to the runtime, too.
	Secrets *secrets.Store
	// Resolver resolves names; nil: the system's.
	Resolver *net.Resolver
	// Timeout bounds one exchange, body included. Default: 30 seconds.
	Timeout time.Duration
	// MaxBody bounds the bytes of a decompressed response. Default: 8 MiB.
	MaxBody int64
	// MaxRatio bounds the decompression ratio of a response. Default: 100.
	MaxRatio int
	// Media lists the types of responses that the client reads, such as
	// application/json and text/*; nil: all. It reads no byte of another type.
	// A response that a call reads is then an error. The response of an effect,
	// and an error response, are then empty, because their status suffices. A
	// response without a type is application/octet-stream.
	Media []string
	// MaxRedirects bounds the redirects. Default: 5; negative: none.
	MaxRedirects int
	// Late is how long after its sending a request whose response was lost can
	// still take effect. Before that, a missing item is not known to be absent.
	// Default: 2 minutes.
	Late time.Duration
}

// Credential is a secret that the client sends to one origin, in a header of
// each request.
type Credential struct {
	Origin string `json:"origin"`           // scheme, host and port, such as https://api.example.com; https, or http on this machine
	Header string `json:"header,omitempty"` // default: Authorization
	Prefix string `json:"prefix,omitempty"` // prefix of the value; default for Authorization: "Bearer "
	Secret string `json:"secret"`           // name of the secret
}

// Client is the driver of this package: it holds the access to the network. It
// is safe for concurrent use.
type Client struct {
	opts      Options
	transport *http.Transport
	dialer    *net.Dialer
	host      host.Host // host for reverts, which have no call
	back      restoredVersions
}

// New creates a client.
func New(o Options) (*Client, error) {
	o.Timeout = positive(o.Timeout, 30*time.Second)
	o.MaxBody = positive(o.MaxBody, 8<<20)
	o.MaxRatio = positive(o.MaxRatio, 100)
	o.Late = positive(o.Late, 2*time.Minute)
	if o.MaxRedirects == 0 {
		o.MaxRedirects = 5
	}
	o.Allow = append([]Network{}, o.Allow...)
	for _, n := range o.Allow {
		if !n.prefix.IsValid() {
			return nil, errors.New("web: a zero network is allowed: make it with ParseNetwork")
		}
	}
	o.Media = append([]string{}, o.Media...)
	for i, text := range o.Media {
		media, params, err := mime.ParseMediaType(text)
		if err != nil || len(params) > 0 || !strings.Contains(media, "/") {
			return nil, fmt.Errorf("web: %q is no media type: valid are such as application/json and text/*", text)
		}
		o.Media[i] = media
	}
	o.Credentials = append([]Credential{}, o.Credentials...)
	for i := range o.Credentials {
		if err := o.Credentials[i].complete(o.Secrets); err != nil {
			return nil, fmt.Errorf("web: credential %d: %w", i+1, err)
		}
	}
	c := &Client{opts: o, host: host.Real()}
	c.dialer = &net.Dialer{Timeout: o.Timeout, Resolver: o.Resolver, ControlContext: c.guard}
	c.dialer.SetMultipathTCP(false)
	c.transport = &http.Transport{
		Proxy:       nil, // a proxy receives addresses that the client has not checked
		DialContext: c.dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: o.CAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: o.Timeout, ResponseHeaderTimeout: o.Timeout, MaxResponseHeaderBytes: 64 << 10,
		DisableCompression: true,
		DisableKeepAlives:  true, // the transport can repeat a request on a kept connection
	}
	return c, nil
}

func positive[N int | int64 | time.Duration](n, otherwise N) N {
	if n <= 0 {
		return otherwise
	}
	return n
}

func (c *Credential) complete(store *secrets.Store) error {
	t, err := ParseURL(c.Origin)
	switch {
	case err != nil:
		return fmt.Errorf("origin %q: %w", c.Origin, err)
	case t.path() != "/" || t.query != "":
		return fmt.Errorf("origin %q: valid is scheme, host and port alone", c.Origin)
	case t.resource.Kind() != perm.KindHTTPS && !local(t.resource.Host()):
		return fmt.Errorf("origin %q: a credential is sent by https, or on this machine", c.Origin)
	case store == nil:
		return errors.New("there are no Secrets to take it from")
	}
	if c.Header == "" {
		c.Header = "Authorization"
		if c.Prefix == "" {
			c.Prefix = "Bearer "
		}
	}
	if !token(c.Header) || !headerValue(c.Prefix+"x") {
		return errors.New("its header or prefix is none")
	}
	if _, err := perm.KindSecret.Resource(c.Secret); err != nil {
		return err
	}
	c.Origin = t.origin()
	return nil
}

func local(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// Schemes returns the scheme that restores what calls changed through this
// package.
func (c *Client) Schemes() []revert.Scheme { return []revert.Scheme{scheme{c}} }

// guard checks a connection by the dialled address, after any resolver resolved
// the name.
func (c *Client) guard(_ context.Context, network, address string, _ syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return &addressError{address: network}
	}
	return checkAddress(address, c.opts.Allow)
}

// credential returns the credential of an origin.
func (c *Client) credential(t Target) (Credential, bool) {
	for _, cr := range c.opts.Credentials {
		if cr.Origin == t.origin() {
			return cr, true
		}
	}
	return Credential{}, false
}

// exchange is one request and its response.
type exchange struct {
	method string
	to     Target
	header http.Header
	body   []byte
}

// sendError describes a request that ended without a response. Sent is false
// only if no byte of it can have reached the server.
type sendError struct {
	sent bool
	text string // without secrets that the server repeated
	err  error
}

func (e *sendError) Error() string { return e.text }
func (e *sendError) Unwrap() error { return e.err }

// send performs one exchange: one connection, one request, no redirect, no
// retry.
func (c *Client) send(ctx context.Context, x exchange) (Response, error) {
	failed := func(sent bool, err error) (Response, error) {
		return Response{}, &sendError{sent: sent, text: c.hide(x.method + " " + x.to.Masked() + ": " + err.Error()), err: err}
	}
	u, err := x.to.url()
	if err != nil {
		return failed(false, err)
	}
	var got atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { got.Store(true) }})
	req, err := http.NewRequestWithContext(traced, x.method, u.String(), strings.NewReader(string(x.body)))
	if err != nil {
		return failed(false, errors.New("the request cannot be made"))
	}
	req.URL = u
	if len(x.body) == 0 {
		req.Body, req.GetBody, req.ContentLength = http.NoBody, nil, 0
	}
	req.Header = x.header.Clone()
	req.Header.Set("Accept-Encoding", "gzip")
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "remit")
	}
	client := http.Client{Transport: c.transport, Timeout: c.opts.Timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return failed(got.Load(), plainError(err))
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := c.readBody(resp)
	if err != nil {
		return failed(true, plainError(err))
	}
	return Response{Status: resp.StatusCode, Header: c.hideHeader(resp.Header), Body: body, URL: x.to}, nil
}

// plainError returns an error without the URL, whose query can be secret. A
// refused address is a denial.
func plainError(err error) error {
	var refused *addressError
	var failed *url.Error
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%w: %w", ctxperm.ErrDenied, refused)
	case !errors.As(err, &failed):
		return err
	case failed.Timeout():
		return fmt.Errorf("no answer in time: %w", failed.Err)
	}
	return failed.Err
}
