package config

import (
	"errors"
	"fmt"
	"strings"
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

// Error names the server, the reason and the command to run.
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
