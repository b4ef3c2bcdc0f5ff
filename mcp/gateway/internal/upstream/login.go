package upstream

import (
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/remit-dev/remit/mcp/gateway/config"
)

// LoginOf returns the LoginError in an error, or nil.
func LoginOf(err error) *config.LoginError {
	var login *config.LoginError
	if errors.As(err, &login) {
		return login
	}
	return nil
}

// UnreadError returns the error of a request that its server rejected for lack
// of authorization, without reading it; otherwise nil.
func UnreadError(err error) error {
	if login := LoginOf(err); login != nil {
		return login
	}
	if errors.Is(err, config.ErrNotSent) {
		return err
	}
	return nil
}

// authorizer returns the handler that authorizes the gateway at the server. All
// connections share it, as it holds the token.
func (u *Upstream) authorizer() auth.OAuthHandler {
	if u.Shared.Authorize == nil || u.Server.URL == "" || u.Server.Authorized() {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.auth == nil {
		u.auth = u.Shared.Authorize(u.Server.Name, u.Server.URL)
	}
	return u.auth
}

// renewed reports whether a login took place since the server needed one. The
// backoff ends then.
func (u *Upstream) renewed(why error) bool {
	if LoginOf(why) == nil {
		return false
	}
	h, ok := u.authorizer().(interface{ Renewed() bool })
	return ok && h.Renewed()
}

// finish lets the authorization handler complete its work.
func (u *Upstream) finish() {
	if c, ok := u.authorizer().(io.Closer); ok {
		if err := c.Close(); err != nil {
			u.Shared.Log.Warn("a login was not brought to its end", "server", u.Server.Name, "error", err)
		}
	}
}
