package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/config"
)

// Handler returns the handler of the tokens for a server at a URL, for
// gateway.Options.Authorize. It renews tokens and never starts a login: a
// config.LoginError says that a user must log in.
func (s Store) Handler(server, url string) auth.OAuthHandler {
	return &handler{store: s, server: server, url: url, renewalLock: make(chan struct{}, 1), shut: make(chan struct{})}
}

type handler struct {
	store       Store
	server, url string

	renewalLock chan struct{} // serializes renewals
	shut        chan struct{} // closed: no more renewals
	once        sync.Once
}

// Close waits for a running renewal, as its result would be lost with the
// process, and prevents further ones.
func (h *handler) Close() error {
	h.once.Do(func() {
		close(h.shut)
		h.renewalLock <- struct{}{}
	})
	return nil
}

var errShut = errors.New("the gateway is being closed")

// begin takes the lock for a renewal, in this process and then among all.
func (h *handler) begin() (end func(), err error) {
	select {
	case <-h.shut:
		return nil, errShut
	case h.renewalLock <- struct{}{}:
	}
	unlock, err := h.store.holding(h.server, h.url)
	if err != nil {
		<-h.renewalLock
		return nil, err
	}
	return func() {
		unlock()
		<-h.renewalLock
	}, nil
}

// Renewed reports whether there is a token that is valid or can be renewed.
func (h *handler) Renewed() bool {
	r, err := h.store.read(h.server, h.url)
	return err == nil && r.Access != "" && r.Needs == ""
}

// TokenSource returns the token. It returns nil before a login: the server may
// need no token.
func (h *handler) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	r, err := h.read()
	switch {
	case err != nil:
		return nil, err
	case r.Access == "":
		return nil, nil //nolint:nilnil // as the interface defines it
	case !r.counts():
		if r, err = h.renew(ctx, r.Access, nil); err != nil {
			return nil, err
		}
	}
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: r.Access}), nil
}

func (h *handler) read() (record, error) {
	r, err := h.store.read(h.server, h.url)
	if err != nil {
		return r, h.unsent(err)
	}
	return r, nil
}

// unsent returns an error for a request that was not sent. A later request can
// succeed.
func (h *handler) unsent(err error) error {
	return fmt.Errorf("the token for server %s cannot be had: %w: %w", h.server, err, config.ErrNotSent)
}

// Authorize takes the server's rejection of a request. If it returns nil, the
// request is sent again with the current token of TokenSource.
func (h *handler) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	_ = resp.Body.Close()
	used := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	challenge := resp.Header.Values("WWW-Authenticate")
	if resp.StatusCode != http.StatusForbidden {
		_, err := h.renew(ctx, used, append([]string{}, challenge...))
		return err
	}
	scopes, more := wantsMore(challenge)
	if !more {
		return nil // the response to the repeated request counts
	}
	end, err := h.begin()
	if err != nil {
		return h.unsent(err)
	}
	defer end()
	r, err := h.read()
	switch {
	case err != nil:
		return err
	case r.Access != used:
		return nil // a user logged in meanwhile
	}
	return h.need(r, "it wants more rights than it was given: "+canon.Printable(scopes, 256), challenge)
}

// wantsMore reports whether a server needs a token with more scopes, and which.
func wantsMore(challenge []string) (scopes string, more bool) {
	all, err := oauthex.ParseWWWAuthenticate(challenge)
	i := slices.IndexFunc(all, func(c oauthex.Challenge) bool { return c.Params["error"] == "insufficient_scope" })
	if err != nil || i < 0 {
		return "", false
	}
	return all[i].Params["scope"], true
}

// fresh is the age below which a rejected token is not renewed: the server
// would reject a new one too.
const fresh = time.Minute

// renew replaces a token that has expired, or that the server rejected with the
// challenge.
func (h *handler) renew(ctx context.Context, used string, challenge []string) (record, error) {
	end, err := h.begin()
	if err != nil {
		return record{}, h.unsent(err)
	}
	defer end()
	r, err := h.read()
	switch {
	case err != nil:
		return r, err
	case r.Access != used && r.counts():
		return r, nil // another process renewed it, or a user logged in
	case r.Access == "" && r.Needs != "":
		return r, h.need(r, r.Needs, challenge)
	case r.Access == "":
		return r, h.need(r, "it requires one, and there is no login", challenge)
	case challenge != nil && r.Access == used && time.Since(r.Issued) < fresh:
		return r, h.need(r, "it refuses the token that it was just given", challenge)
	case r.Refresh == "":
		r.Access = ""
		return r, h.need(r, "the token has ended, and nothing was given to renew it with", challenge)
	}
	t, err := renewed(ctx, r)
	if why := refused(err); why != "" {
		r.Access, r.Refresh = "", ""
		return r, h.need(r, "the token is not renewed any more ("+why+")", challenge)
	}
	if err != nil {
		return r, h.unsent(plain(err))
	}
	r.take(t)
	if err := h.store.write(r); err != nil {
		return r, h.unsent(err)
	}
	return r, nil
}

// need records that a login is needed, and returns the error. The caller holds
// the lock.
func (h *handler) need(r record, why string, challenge []string) error {
	e := &config.LoginError{Server: h.server, Why: why}
	if h.store.Fix != nil {
		e.Fix = h.store.Fix(h.server)
	}
	was, err := h.store.read(h.server, h.url)
	if err != nil {
		return errors.Join(e, err)
	}
	r.Needs = why
	if len(challenge) > 0 {
		r.Challenge = challenge
	}
	if was.Needs == r.Needs && was.Access == r.Access && slices.Equal(was.Challenge, r.Challenge) {
		return e
	}
	return errors.Join(e, h.store.write(r))
}

// renewed requests the next token. It sends the request of x/oauth2 and adds
// the resource, which x/oauth2 lacks.
func renewed(ctx context.Context, r record) (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait) // it waits for the response even if the caller does not: the new token can be the only valid one
	defer cancel()
	c := oauth2.Config{ClientID: r.Client.ID, ClientSecret: r.Client.Secret, Endpoint: oauth2.Endpoint{TokenURL: r.Client.TokenURL, AuthStyle: oauth2.AuthStyle(r.Client.Style)}}
	return c.Exchange(context.WithValue(ctx, oauth2.HTTPClient, browserless(r.URL)), "",
		oauth2.SetAuthURLParam("grant_type", "refresh_token"), oauth2.SetAuthURLParam("refresh_token", r.Refresh), oauth2.SetAuthURLParam("resource", r.Resource))
}
