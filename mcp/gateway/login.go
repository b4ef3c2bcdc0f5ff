package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// OAuth is what a person knows of how to log in at a server by URL, beside what the server says itself. The zero value knows nothing.
type OAuth struct {
	ClientID     string // that the authorization server was told of beforehand
	ClientSecret string // with it, Issuer is set
	Issuer       string // of the authorization server that knows ClientID: it is given to no other
	MetadataURL  string // of a document that says who the client is, which is its id
	CallbackPort int    // on this machine, that the browser comes back to; 0 is any that is free
	Scopes       []string
}

// LoginError says that a server wants a person to log in, and that what was to be done at it was not done.
type LoginError struct {
	Server string
	Why    string
	Fix    string // the command to run; empty: nobody said
}

func (e *LoginError) Error() string {
	text := fmt.Sprintf("server %s needs a login: %s", e.Server, e.Why)
	if e.Fix != "" {
		text += "; run: " + e.Fix
	}
	return text
}

// ErrNotSent is in an error of Options.Authorize on account of which a request was not sent, and which may be gone the next time.
var ErrNotSent = errors.New("nothing was sent")

// loginOf is the want of a login that an error is about; nil where it is about something else.
func loginOf(err error) *LoginError {
	var login *LoginError
	if errors.As(err, &login) {
		return login
	}
	return nil
}

// missed is the error of a request that its server has not looked at, since nothing proves who asks; nil where it is about something else.
func missed(err error) error {
	if login := loginOf(err); login != nil {
		return login
	}
	if errors.Is(err, ErrNotSent) {
		return err
	}
	return nil
}

// Authorized reports whether the configuration itself has what proves who calls: nobody logs in at such a server.
func (s Server) Authorized() bool {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

// authorizer is who authorizes the gateway at the server: the same one for all connections, which has the token.
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

// renewed reports whether somebody has logged in since a login was wanted: then nobody waits any longer.
func (u *upstream) renewed(why error) bool {
	if loginOf(why) == nil {
		return false
	}
	h, ok := u.authorizer().(interface{ Renewed() bool })
	return ok && h.Renewed()
}

// finish lets whoever authorizes the gateway bring to an end what it is at.
func (u *upstream) finish() {
	if c, ok := u.authorizer().(io.Closer); ok {
		if err := c.Close(); err != nil {
			u.g.log.Warn("a login was not brought to its end", "server", u.cfg.Name, "error", err)
		}
	}
}

// redirected refuses to be led elsewhere: headers, and tokens, are for the URL that is configured alone.
func redirected(*http.Request, []*http.Request) error {
	return errors.New("the server redirects, which would take its headers elsewhere; configure the URL that it redirects to")
}
