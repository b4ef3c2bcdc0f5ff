package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/secrets"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/perm"
)

var (
	contexts        = handleaccess.ContextsOf[ctxperm.ToolContext, ctxperm.Permit]()
	secretInternals = handleaccess.SecretsOf[secrets.Secret, secrets.Store]()
)

// Request is a request of a tool to a service.
type Request struct {
	Method       string // GET, HEAD, POST, PUT, PATCH or DELETE
	URL          string
	Headers      map[string]string
	Body         []byte
	Key          string        // sent as Idempotency-Key; empty: none
	Compensation *Compensation // reverts the effect; nil: the effect cannot be reverted
}

// Response is the response of a service, without the secret values that it
// repeated.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	URL    Target // URL of the response, after redirects
}

// OK reports whether the status is 2xx.
func (r Response) OK() bool { return r.Status >= 200 && r.Status < 300 }

// methods lists the supported methods.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// IsReadMethod reports whether a method requests no effect.
func IsReadMethod(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// Do sends a request for the call of tc. It authorizes "connect", with the
// method, on the resource of the URL. If the origin has a credential, it also
// authorizes the use of its secret. GET and HEAD follow redirects, and Do
// authorizes each like a request. Other methods do not follow redirects.
//
// A request that can have an effect is on the journal before it is sent, with
// its Compensation if it has one. An error that wraps ctxperm.ErrDenied states
// that an access, or the address, was denied.
func Do(ctx context.Context, tc ctxperm.ToolContext, r Request) (Response, error) {
	c, err := ctxperm.DriverOf[*Client](ctx, tc)
	if errors.Is(err, ctxperm.ErrNoDriver) {
		return Response{}, fmt.Errorf("http: %w; make one with web.New, and give it to the runtime with agent.Driver", err)
	}
	if err != nil {
		return Response{}, err
	}
	s, err := c.open(tc, r)
	if err != nil {
		return Response{}, err
	}
	if IsReadMethod(r.Method) {
		return s.fetch(ctx)
	}
	return s.effect(ctx)
}

// outgoingRequest is one request of a call in progress.
type outgoingRequest struct {
	*Client
	tc     ctxperm.ToolContext
	call   *callstate.Call
	req    Request
	to     Target
	header http.Header
	origin string // origin of the first URL: credentials and headers go only there
}

// Check returns ErrInvalid for a request that is invalid by itself.
func Check(r Request) error {
	_, _, err := r.read()
	return err
}

func (r Request) read() (to Target, header http.Header, err error) {
	if !slices.Contains(methods, r.Method) {
		return to, nil, fmt.Errorf("%w method: valid are %s", ctxperm.ErrInvalid, strings.Join(methods, ", "))
	}
	if to, err = ParseURL(r.URL); err != nil {
		return to, nil, err
	}
	if header, err = headersOf(r.Headers); err != nil {
		return to, nil, err
	}
	if r.Key != "" {
		if len(r.Key) > 255 || !headerValue(r.Key) {
			return to, nil, fmt.Errorf("%w idempotency key: up to 255 characters of printable ASCII are valid", ctxperm.ErrInvalid)
		}
		header.Set("Idempotency-Key", r.Key)
	}
	if IsReadMethod(r.Method) && (len(r.Body) > 0 || r.Key != "" || r.Compensation != nil) {
		return to, nil, fmt.Errorf("%w request: %s must have no body, no key and no compensation", ctxperm.ErrInvalid, r.Method)
	}
	return to, header, r.Compensation.check(to)
}

// open prepares a request of a call for authorization.
func (c *Client) open(tc ctxperm.ToolContext, r Request) (*outgoingRequest, error) {
	to, header, err := r.read()
	if err != nil {
		return nil, err
	}
	if int64(len(r.Body)) > c.opts.MaxBody {
		return nil, fmt.Errorf("%w body: it has %d bytes; at most %d are sent", ctxperm.ErrInvalid, len(r.Body), c.opts.MaxBody)
	}
	s := &outgoingRequest{Client: c, tc: tc, call: contexts.Call(tc), req: r, to: to, header: header, origin: to.origin()}
	return s, s.free(to)
}

// free refuses a request that contains a secret value. Only the runtime sends
// one, and only to its origin.
func (s *outgoingRequest) free(to Target) error {
	text := to.String() + "\n" + string(s.req.Body)
	for name, values := range s.header {
		text += "\n" + name + "\n" + strings.Join(values, "\n")
	}
	if s.call.Scrub(text) != text {
		return fmt.Errorf("%w request: it holds the value of a secret; a credential is configured for its origin, and added there", ctxperm.ErrInvalid)
	}
	return nil
}

func connect(method string, t Target) perm.ResourceAccess {
	return perm.ResourceAccess{Action: perm.Connect, Resource: t.resource.String(), Method: method}
}

// fetch reads a URL and follows redirects.
func (s *outgoingRequest) fetch(ctx context.Context) (Response, error) {
	for hop := 0; ; hop++ {
		resp, err := s.read(ctx)
		if err != nil {
			return Response{}, err
		}
		location := resp.Header.Get("Location")
		if !redirects(resp.Status) || location == "" || s.opts.MaxRedirects < 0 {
			return resp, nil
		}
		if hop >= s.opts.MaxRedirects {
			return Response{}, fmt.Errorf("%s %s: more than %d redirects", s.req.Method, s.to.Masked(), s.opts.MaxRedirects)
		}
		next, err := s.to.follow(location)
		if err == nil {
			err = s.free(next)
		}
		if err != nil {
			return Response{}, fmt.Errorf("%s %s: %w", s.req.Method, s.to.Masked(), err)
		}
		if next.origin() != s.origin { // also on a redirect back, because the other server chose the URL
			s.origin = ""
			s.header = http.Header{}
		}
		s.to = next
	}
}

func redirects(status int) bool {
	return slices.Contains([]int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect}, status)
}

// read authorizes and reads one URL.
func (s *outgoingRequest) read(ctx context.Context) (Response, error) {
	permit, err := ctxperm.Authorize(ctx, s.tc, connect(s.req.Method, s.to))
	if err != nil {
		return Response{}, err
	}
	defer permit.End()
	x := exchange{method: s.req.Method, to: s.to, header: s.header.Clone()}
	if err := s.addCredential(ctx, &x); err != nil {
		return Response{}, err
	}
	if err := s.call.Config().Recorder.Host().Point(ctx, "web.read"); err != nil {
		return Response{}, err
	}
	resp, err := s.send(ctx, x)
	return s.clean(resp), err
}

// addCredential adds the credential of the origin, if the call may use it.
func (s *outgoingRequest) addCredential(ctx context.Context, x *exchange) error {
	cr, ok := s.credential(x.to)
	if !ok || x.to.origin() != s.origin {
		return nil
	}
	secret, err := s.opts.Secrets.Open(ctx, s.tc, cr.Secret)
	if err != nil {
		return err
	}
	value, err := secretInternals.Reveal(secret)
	if err != nil {
		return err
	}
	return cr.add(x, value)
}

func (cr Credential) add(x *exchange, value string) error {
	if !headerValue(cr.Prefix + value) {
		return fmt.Errorf("secret %s cannot be sent in a header: valid is printable ASCII in one line", cr.Secret)
	}
	x.header.Set(cr.Header, cr.Prefix+value)
	return nil
}

// clean removes secret values from a response.
func (s *outgoingRequest) clean(r Response) Response {
	r.Body = cleanBytes(s.call, r.Body)
	for name, values := range r.Header {
		for i := range values {
			r.Header[name][i] = s.call.Scrub(values[i])
		}
	}
	return r
}

func cleanBytes(call *callstate.Call, b []byte) []byte {
	if out := call.Scrub(string(b)); out != string(b) {
		return []byte(out)
	}
	return b
}
