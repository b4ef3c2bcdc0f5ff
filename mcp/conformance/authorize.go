package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// callback is the address to which the suite's authorization servers redirect
// after an authorization. No process listens there.
const callback = "http://localhost:3000/callback"

// authorizer gets a token as the gateway's user would.
func (d *driver) authorizer(log *slog.Logger) func(server, url string) auth.OAuthHandler {
	return func(string, string) auth.OAuthHandler {
		c := &auth.AuthorizationCodeHandlerConfig{
			RedirectURL: callback, AuthorizationCodeFetcher: visit,
			ClientIDMetadataDocumentConfig:  &auth.ClientIDMetadataDocumentConfig{URL: "https://conformance-test.local/client-metadata.json"},
			DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{RedirectURIs: []string{callback}}},
		}
		if d.suite.ClientID != "" && d.suite.ClientSecret != "" {
			c.PreregisteredClient = &oauthex.ClientCredentials{
				ClientID: d.suite.ClientID, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: d.suite.ClientSecret},
			}
		}
		h, err := auth.NewAuthorizationCodeHandler(c)
		if err != nil {
			log.Error("nobody can authorize", "error", err)
			return nil
		}
		return h
	}
}

// visit is the person who says yes: the suite's servers answer with where the browser is to go.
func visit(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, args.URL, nil)
	if err != nil {
		return nil, err
	}
	resp, err := browser.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		return nil, err
	}
	return &auth.AuthorizationResult{Code: to.Query().Get("code"), State: to.Query().Get("state"), Iss: to.Query().Get("iss")}, nil
}
