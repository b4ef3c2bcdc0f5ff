package login

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

const callbackPath = "/callback"

// callback receives the browser's redirect: a listener on this machine, for one
// login.
type callback struct {
	listener net.Listener
	server   *http.Server
	state    string // set before the browser opens
	received chan url.Values
}

func listen(port int) (*callback, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("the browser has nowhere to come back to: %w", err)
	}
	return &callback{listener: l, received: make(chan url.Values, 1)}, nil
}

func (c *callback) url() string { return "http://" + c.listener.Addr().String() + callbackPath }

func (c *callback) close() {
	if c.server != nil {
		_ = c.server.Close()
	}
	_ = c.listener.Close()
}

// wait waits for the redirect. It ignores requests with another state, which
// any page that knows the port can send.
func (c *callback) wait(ctx context.Context, state string) (url.Values, error) {
	c.state = state
	c.server = &http.Server{Handler: c, ReadTimeout: wait, WriteTimeout: wait, MaxHeaderBytes: 64 << 10}
	go func() { _ = c.server.Serve(c.listener) }()
	select {
	case v := <-c.received:
		// The browser gets its response.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = c.server.Shutdown(end)
		return v, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// ServeHTTP takes the redirect, once.
func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer") // the code is in the URL
	v := r.URL.Query()
	if r.Method != http.MethodGet || r.URL.Path != callbackPath || subtle.ConstantTimeCompare([]byte(v.Get("state")), []byte(c.state)) != 1 {
		http.Error(w, "This is not what remit waits for.", http.StatusBadRequest)
		return
	}
	select {
	case c.received <- v:
		_, _ = fmt.Fprintln(w, "remit has what it waited for. What comes of it is told where it was started; this page can be closed.")
	default:
		http.Error(w, "remit has this already.", http.StatusConflict)
	}
}

// ErrRefused is the error of a login that was denied at the authorization
// server.
var ErrRefused = errors.New("it was refused at the authorization server")

// answered returns the redirect's parameters for the SDK to check. For an
// error, the SDK first checks its issuer, and then stops.
func answered(v url.Values, stop context.CancelCauseFunc) *auth.AuthorizationResult {
	switch code := v.Get("error"); code {
	case "":
	case "access_denied":
		stop(ErrRefused)
	default:
		stop(errors.New("the authorization server says: " + errorText(code, http.StatusBadRequest)))
	}
	return &auth.AuthorizationResult{Code: v.Get("code"), State: v.Get("state"), Iss: v.Get("iss")}
}
