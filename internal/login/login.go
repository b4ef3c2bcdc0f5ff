package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/remit-dev/remit/mcp/gateway/config"
)

// Login logs a user in at a server, and stores the token once the server has
// accepted it. Show gets the page that the user must open in a browser on this
// machine. Login then waits until the redirect or the end of ctx. No error
// contains a secret.
func (s Store) Login(ctx context.Context, server config.Server, show func(page string)) (Info, error) {
	if err := able(server); err != nil {
		return Info{}, err
	}
	back, err := listen(server.OAuth.CallbackPort)
	if err != nil {
		return Info{}, err
	}
	defer back.close()
	f, err := s.flow(server, back, show)
	if err != nil {
		return Info{}, err
	}
	if err := f.run(ctx); err != nil {
		return Info{}, err
	}
	unlock, err := s.holding(server.Name, server.URL)
	if err != nil {
		return Info{}, err
	}
	defer unlock()
	r := f.record()
	if err := s.write(r); err != nil {
		return Info{}, err
	}
	return r.kept(), nil
}

// able returns why no login at a server is possible.
func able(s config.Server) error {
	u, err := url.Parse(s.URL)
	switch {
	case s.URL == "":
		return errors.New("it is started by a command, and gets what it needs by its environment; only servers by URL want a login")
	case s.Authorized():
		return errors.New(`its entry has a header "Authorization", which is sent as it is; take it out to log in instead`)
	case s.SSE:
		return errors.New(`its entry is of the older type "sse", for which there is no login; most such servers have a URL of type "http" too`)
	case err != nil:
		return err
	}
	return private(u, s.URL)
}

// flow is one login.
type flow struct {
	server  config.Server
	was     record // the stored record before
	back    *callback
	show    func(page string)
	client  *http.Client
	handler *auth.AuthorizationCodeHandler
	ask     func(*http.Request, *http.Response) error // valid during the login

	mu       sync.Mutex // the connection calls from several goroutines; held while the user logs in
	begun    bool       // the user is asked once
	stop     context.CancelCauseFunc
	failed   error
	resource string
	oauth    *oauth2.Config
	token    *oauth2.Token
}

func (s Store) flow(server config.Server, back *callback, show func(string)) (f *flow, err error) {
	was, err := s.read(server.Name, server.URL)
	if err != nil {
		was = record{} // to be replaced
	}
	f = &flow{server: server, was: was, back: back, show: show, client: browserless(server.URL)}
	f.handler, err = auth.NewAuthorizationCodeHandler(f.config())
	return f, err
}

func (f *flow) config() *auth.AuthorizationCodeHandlerConfig {
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: f.back.url(), RequestRefreshToken: true, AcceptUnadvertisedIss: true, Client: f.client,
		AuthorizationCodeFetcher: f.fetch, ScopeFilter: f.scopes,
		NewTokenSource: func(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			f.oauth, f.token = c, t
			return oauth2.StaticTokenSource(t), nil
		},
	}
	o := f.server.OAuth
	if o.ClientID != "" { // do not register another client instead
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: o.ClientID, Issuer: o.Issuer}
		if o.ClientSecret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: o.ClientSecret}
		}
		return c
	}
	if o.MetadataURL != "" {
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: o.MetadataURL}
	}
	c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
		ClientName: "remit gateway", RedirectURIs: []string{c.RedirectURL}, TokenEndpointAuthMethod: "none",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}}
	return c
}

// scopes returns the scopes to request: those of the configuration, or of the
// server, and the earlier ones if those were not enough.
func (f *flow) scopes(found []string) []string {
	if len(f.server.OAuth.Scopes) > 0 {
		return f.server.OAuth.Scopes
	}
	if _, more := wantsMore(f.was.Challenge); more {
		for _, scope := range f.was.Scopes {
			if !slices.Contains(found, scope) {
				found = append(found, scope)
			}
		}
	}
	return found
}

// run connects to the server, which demands a login and then accepts or rejects
// the token. Nothing asks the user after run has returned.
func (f *flow) run(ctx context.Context) error {
	asking, end := context.WithCancel(ctx)
	defer end()
	f.ask = func(req *http.Request, resp *http.Response) error { return f.authorize(asking, req, resp) }
	if len(f.was.Challenge) > 0 { // a gateway knows its challenge, which it may not send to every connection
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.server.URL, http.NoBody)
		if err != nil {
			return err
		}
		resp := &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{"Www-Authenticate": f.was.Challenge}, Body: http.NoBody}
		if err := f.ask(req, resp); err != nil {
			return err
		}
	}
	err := f.connect(ctx)
	end()
	f.mu.Lock() // waits for late calls, such as the SDK's cancellation of the first message
	defer f.mu.Unlock()
	switch {
	case f.failed != nil:
		return f.failed
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return plain(err)
	case f.token == nil:
		return errors.New("it answers without a login; nothing is kept")
	}
	return nil
}

func (f *flow) connect(ctx context.Context) error {
	own := &http.Client{Transport: headerTransport{f.server.Headers, &http.Transport{ForceAttemptHTTP2: true, DisableKeepAlives: true}}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the server redirects; configure the URL that it redirects to")
	}}
	cs, err := sdk.NewClient(&sdk.Implementation{Name: "remit", Version: "login"}, nil).Connect(ctx,
		&sdk.StreamableClientTransport{Endpoint: f.server.URL, HTTPClient: own, OAuthHandler: f, MaxRetries: -1, DisableStandaloneSSE: true}, nil)
	if err != nil {
		return err
	}
	f.mu.Lock()
	open := f.token == nil
	f.mu.Unlock()
	if open { // the server may accept connections without a token
		_, _ = cs.ListTools(ctx, nil)
	}
	return cs.Close()
}

// TokenSource returns the token once there is one.
func (f *flow) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	return f.handler.TokenSource(ctx)
}

// Authorize logs the user in, once. It blocks until the login ends, regardless
// of the timeout of its request.
func (f *flow) Authorize(_ context.Context, req *http.Request, resp *http.Response) error {
	return f.ask(req, resp)
}

func (f *flow) authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		_ = resp.Body.Close()
		return err
	}
	if f.begun {
		_ = resp.Body.Close()
		if f.failed == nil {
			f.failed = fmt.Errorf("the server does not take the token that it was just given (status %d)", resp.StatusCode)
		}
		return f.failed
	}
	if resp.StatusCode == http.StatusForbidden { // without an identity, no login can help
		return resp.Body.Close()
	}
	f.begun = true
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	f.stop = stop
	err := f.handler.Authorize(ctx, req, resp)
	cause := context.Cause(ctx)
	switch {
	case err == nil:
	case cause != nil && (errors.Is(err, cause) || errors.Is(err, context.Canceled)):
		f.failed = cause
	default:
		f.failed = plain(err)
	}
	return f.failed
}

// fetch sends the user to the authorization server, and waits for the redirect.
func (f *flow) fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	page, err := url.Parse(args.URL)
	if err != nil {
		return nil, errors.New("the page to log in at has no URL that could be opened")
	}
	if err := private(page, f.server.URL); err != nil {
		return nil, err
	}
	f.resource = page.Query().Get("resource")
	f.show(page.String())
	v, err := f.back.wait(ctx, page.Query().Get("state"))
	if err != nil {
		return nil, err
	}
	return answered(v, f.stop), nil
}

// record returns the record to store.
func (f *flow) record() record {
	style := f.oauth.Endpoint.AuthStyle
	if f.oauth.ClientSecret == "" { // no header to authenticate with
		style = oauth2.AuthStyleInParams
	}
	r := record{
		V: 1, Server: f.server.Name, URL: f.server.URL, Resource: f.resource, Scopes: slices.Clone(f.oauth.Scopes),
		Client: client{ID: f.oauth.ClientID, Secret: f.oauth.ClientSecret, Style: int(style), TokenURL: f.oauth.Endpoint.TokenURL},
	}
	r.take(f.token)
	return r
}

// headerTransport adds the configured headers of a server.
type headerTransport struct {
	headers map[string]string
	base    http.RoundTripper
}

// RoundTrip sends one request.
func (h headerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h.headers {
		if !strings.EqualFold(name, "Authorization") {
			r.Header.Set(name, value)
		}
	}
	return h.base.RoundTrip(r)
}
