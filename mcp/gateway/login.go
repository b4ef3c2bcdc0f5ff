package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// OAuth is the configured login at a server by URL, beside what the server
// declares. The zero value configures nothing.
type OAuth struct {
	ClientID     string // preregistered at the authorization server
	ClientSecret string // requires Issuer
	Issuer       string // of the authorization server that knows ClientID; no other gets the secret
	MetadataURL  string // of a client metadata document, which is the client ID
	CallbackPort int    // on this machine, for the browser's redirect; 0: any free port
	Scopes       []string
}

// LoginError says that a server needs a login, and that the request had no
// effect.
type LoginError struct {
	Server string
	Why    string
	Fix    string // the command to run; empty: unknown
}

func (e *LoginError) Error() string {
	text := fmt.Sprintf("server %s needs a login: %s", e.Server, e.Why)
	if e.Fix != "" {
		text += "; run: " + e.Fix
	}
	return text
}

// ErrNotSent is in an error of the Authorize handler that kept a request from
// being sent. A later request can succeed.
var ErrNotSent = errors.New("nothing was sent")

// loginOf returns the LoginError in an error, or nil.
func loginOf(err error) *LoginError {
	var login *LoginError
	if errors.As(err, &login) {
		return login
	}
	return nil
}

// missed returns the error of a request that its server rejected for lack of
// authorization, without reading it; otherwise nil.
func missed(err error) error {
	if login := loginOf(err); login != nil {
		return login
	}
	if errors.Is(err, ErrNotSent) {
		return err
	}
	return nil
}

// Authorized reports whether the configuration contains the authorization. Such
// a server needs no login.
func (s Server) Authorized() bool {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

// authorizer returns the handler that authorizes the gateway at the server. All
// connections share it, as it holds the token.
func (u *upstream) authorizer() auth.OAuthHandler {
	if u.g.opts.Authorize == nil || u.cfg.URL == "" || u.cfg.Authorized() {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.auth == nil {
		u.auth = u.g.opts.Authorize(u.cfg.Name, u.cfg.URL)
	}
	return u.auth
}

// renewed reports whether a login took place since the server needed one. The
// backoff ends then.
func (u *upstream) renewed(why error) bool {
	if loginOf(why) == nil {
		return false
	}
	h, ok := u.authorizer().(interface{ Renewed() bool })
	return ok && h.Renewed()
}

// finish lets the authorization handler complete its work.
func (u *upstream) finish() {
	if c, ok := u.authorizer().(io.Closer); ok {
		if err := c.Close(); err != nil {
			u.g.log.Warn("a login was not brought to its end", "server", u.cfg.Name, "error", err)
		}
	}
}

// redirected rejects redirects: headers and tokens are for the configured URL
// alone.
func redirected(*http.Request, []*http.Request) error {
	return errors.New("the server redirects, which would take its headers elsewhere; configure the URL that it redirects to")
}
