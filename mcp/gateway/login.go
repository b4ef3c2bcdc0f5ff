package gateway

import (
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/remit-dev/remit/mcp/gateway/config"
)

// loginOf returns the LoginError in an error, or nil.
func loginOf(err error) *config.LoginError {
	var login *config.LoginError
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
	if errors.Is(err, config.ErrNotSent) {
		return err
	}
	return nil
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
