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
	"github.com/remit-dev/remit/mcp/gateway"
)

// Handler has the tokens for a server at a URL, as gateway.Options.Authorize wants it. It renews them, and never asks anybody: an error that
// is a gateway.LoginError says that somebody has to log in.
func (s Store) Handler(server, url string) auth.OAuthHandler {
	return &handler{store: s, server: server, url: url, turn: make(chan struct{}, 1), shut: make(chan struct{})}
}

type handler struct {
	store       Store
	server, url string

	turn chan struct{} // one at a time renews
	shut chan struct{} // nobody renews any more
	once sync.Once
}

// Close waits for what is being renewed, since what is lost with the process is lost for all, and lets nobody begin anew.
func (h *handler) Close() error {
	h.once.Do(func() {
		close(h.shut)
		h.turn <- struct{}{}
	})
	return nil
}

var errShut = errors.New("the gateway is being closed")

// begin is one's turn to renew, in this process and then among all.
func (h *handler) begin() (end func(), err error) {
	select {
	case <-h.shut:
		return nil, errShut
	case h.turn <- struct{}{}:
	}
	unlock, err := h.store.holding(h.server, h.url)
	if err != nil {
		<-h.turn
		return nil, err
	}
	return func() {
		unlock()
		<-h.turn
	}, nil
}

// Renewed reports whether there is a token that counts by now, or can be renewed.
func (h *handler) Renewed() bool {
	r, err := h.store.read(h.server, h.url)
	return err == nil && r.Access != "" && r.Needs == ""
}

// TokenSource has the token; nil where nobody has logged in: the server may want no token.
func (h *handler) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	r, err := h.read()
	switch {
	case err != nil:
		return nil, err
	case r.Access == "":
		return nil, nil //nolint:nilnil // as the interface has it
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

// unsent is an error on account of which nothing is sent, and which may be gone the next time.
func (h *handler) unsent(err error) error {
	return fmt.Errorf("the token for server %s cannot be had: %w: %w", h.server, err, gateway.ErrNotSent)
}

// Authorize is told that the server refused a request. No error means that it is to be sent again, with what TokenSource has by now.
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
		return nil // it is sent again, and the answer to that is what comes of it
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
		return nil // somebody logged in meanwhile
	}
	return h.need(r, "it wants more rights than it was given: "+canon.Printable(scopes, 256), challenge)
}

// wantsMore reports whether a server wants a token with more scopes, and which.
func wantsMore(challenge []string) (scopes string, more bool) {
	all, err := oauthex.ParseWWWAuthenticate(challenge)
	i := slices.IndexFunc(all, func(c oauthex.Challenge) bool { return c.Params["error"] == "insufficient_scope" })
	if err != nil || i < 0 {
		return "", false
	}
	return all[i].Params["scope"], true
}

// fresh is for how long a token that the server refuses is not renewed: another one would be refused as well.
const fresh = time.Minute

// renew gets a token in the place of one that has ended, or that the server refuses: then challenge says with which words.
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
		return r, nil // somebody else has renewed it, or logged in
	case r.Access == "" && r.Needs != "":
		return r, h.need(r, r.Needs, challenge)
	case r.Access == "":
		return r, h.need(r, "it wants one, and nobody has logged in", challenge)
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

// need notes that somebody has to log in, and says so. Its caller has the lock.
func (h *handler) need(r record, why string, challenge []string) error {
	e := &gateway.LoginError{Server: h.server, Why: why}
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

// renewed asks for the next token. The request is the one that x/oauth2 makes to renew a token, and names the resource besides, which that does not.
func renewed(ctx context.Context, r record) (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait) // what was asked for is waited for: the answer may be all that counts from now on
	defer cancel()
	c := oauth2.Config{ClientID: r.Client.ID, ClientSecret: r.Client.Secret, Endpoint: oauth2.Endpoint{TokenURL: r.Client.TokenURL, AuthStyle: oauth2.AuthStyle(r.Client.Style)}}
	return c.Exchange(context.WithValue(ctx, oauth2.HTTPClient, browserless(r.URL)), "",
		oauth2.SetAuthURLParam("grant_type", "refresh_token"), oauth2.SetAuthURLParam("refresh_token", r.Refresh), oauth2.SetAuthURLParam("resource", r.Resource))
}
