package login_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/login"
	"github.com/remit-dev/remit/internal/proof/logintest"
	"github.com/remit-dev/remit/mcp/gateway/config"
)

// TestLogin: a person logs in, and the gateway gets in. What is kept is for its owner alone, and what is told holds nothing of it.
func TestLogin(t *testing.T) {
	h := newTokenServer(t, logintest.Rules{Expires: 3600, Scopes: []string{"a", "b"}, SaysIss: true, Iss: "own"})
	require.ErrorContains(t, h.call(t.Context(), h.URL), "server s needs a login: it requires one, and there is no login; run: remit gateway login s")
	k := h.in()
	require.Equal(t, login.Info{Server: "s", URL: h.URL, Resource: h.URL, Scopes: []string{"a", "b"}, Expires: k.Expires, Renews: true}, k)
	require.WithinRange(t, k.Expires, time.Now().Add(50*time.Minute), time.Now().Add(70*time.Minute))
	require.NoError(t, h.call(t.Context(), h.URL))
	all, err := h.store.All()
	require.NoError(t, err)
	require.Equal(t, []login.Info{k}, all)

	page, err := url.Parse(h.pages[0])
	require.NoError(t, err)
	require.Equal(t, "S256", page.Query().Get("code_challenge_method"))
	require.Equal(t, h.URL, page.Query().Get("resource"))
	require.Len(t, h.pages, 1)
	for _, asked := range h.Asked() {
		require.Equal(t, h.URL, asked.Resource)
	}
	h.silent(fmt.Sprintf("%+v %s", all, h.pages))
	if runtime.GOOS == "windows" {
		return
	}
	path, _ := h.file()
	for name, want := range map[string]os.FileMode{path: 0o600, h.store.Folder: 0o700} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), name)
	}
	drafts, err := filepath.Glob(filepath.Join(h.store.Folder, "*.new"))
	require.NoError(t, err)
	require.Empty(t, drafts)
}

// TestLoginThatFails: what is not as it should be ends the login, nothing is kept, and the error says what it is and nothing that is secret.
func TestLoginThatFails(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	for name, c := range map[string]struct {
		rules logintest.Rules
		want  string
	}{
		"metadata of another issuer":    {logintest.Rules{Issuer: "https://evil.example"}, "does not match"},
		"brought by another":            {logintest.Rules{SaysIss: true, Iss: "https://evil.example"}, "does not match expected issuer"},
		"brought by another, unlooked":  {logintest.Rules{Iss: "https://evil.example"}, "does not match expected issuer"},
		"brought by nobody":             {logintest.Rules{SaysIss: true}, "none was received"},
		"the person says no":            {logintest.Rules{Error: "access_denied"}, login.ErrRefused.Error()},
		"an error":                      {logintest.Rules{Error: "server_error", Iss: "own", SaysIss: true}, "the authorization server says: server_error"},
		"an error that is none":         {logintest.Rules{Error: "<b>bold</b>"}, "the authorization server says: status 400"},
		"an error of another issuer":    {logintest.Rules{Error: "access_denied", SaysIss: true, Iss: "https://evil.example"}, "does not match expected issuer"},
		"tokens come from elsewhere":    {logintest.Rules{Redirect: other.URL}, "redirects to where this may not go"},
		"tokens come without https":     {logintest.Rules{TokenURL: "http://tokens.example/"}, "HTTPS"},
		"tokens come from a user":       {logintest.Rules{TokenURL: "http://me:pass@127.0.0.1:1/"}, "it is no URL that a token could be had from"},
		"the page is of a user":         {logintest.Rules{PageURL: "https://me:pass@login.example/"}, "it is no URL that a token could be had from"},
		"tokens have moved":             {logintest.Rules{Redirect: "/moved"}, "redirects to where this may not go"},
		"no token":                      {logintest.Rules{Status: http.StatusInternalServerError, Body: "SECRET"}, "gives no token: status 500"},
		"a token that is none":          {logintest.Rules{Status: http.StatusOK, Body: `{"access_token": SECRET`}, "gives no token"},
		"a registration that is none":   {logintest.Rules{Body: `{"client_id": SECRET`}, `does not register the gateway; register one by hand, and give its "clientId"`},
		"nobody is registered":          {logintest.Rules{Clients: map[string]string{}}, "registers no clients"},
		"the server wants another one":  {logintest.Rules{RejectTokens: true}, "does not take the token that it was just given"},
		"the server wants a better one": {logintest.Rules{Wants: "more"}, "does not take the token that it was just given"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newTokenServer(t, c.rules)
			k, err := h.login()
			require.ErrorContains(t, err, c.want)
			require.Equal(t, c.want == login.ErrRefused.Error(), errors.Is(err, login.ErrRefused))
			require.Zero(t, k)
			require.NotContains(t, err.Error(), "SECRET")
			require.NotContains(t, err.Error(), "described")
			h.silent(err.Error())
			all, err := h.store.All()
			require.NoError(t, err)
			require.Empty(t, all)
			if c.rules.Error != "" {
				require.Empty(t, h.Asked(), "there is nothing to get a token for")
			}
			require.LessOrEqual(t, len(h.pages), 1)
		})
	}
	require.Zero(t, elsewhere.Load())
}

// TestLoginThatIsOver checks that a login does not open a page after its
// context is cancelled. This includes messages that its connection still sends.
func TestLoginThatIsOver(t *testing.T) {
	h := newTokenServer(t, logintest.Rules{})
	why := errors.New("nobody came")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	first, late := h.store.Late(ctx, h.entry, func(page string) { t.Error("somebody was asked to open", page) })
	require.ErrorIs(t, first, why)
	require.ErrorIs(t, late, why)
}

// TestLoginAllTheSame checks that the login accepts harmless deviations of
// authorization servers, and rejects a redirect to another host.
func TestLoginAllTheSame(t *testing.T) {
	newTokenServer(t, logintest.Rules{Iss: "own"}).in()
	h := newTokenServer(t, logintest.Rules{})
	other := strings.Replace(strings.TrimPrefix(h.Base, "http://"), "127.0.0.1", "localhost", 1)
	h.Now(func(r *logintest.Rules) { r.Moved = other })
	_, err := h.login()
	require.ErrorContains(t, err, "redirects to where this may not go", "but not what leads elsewhere")
}

// TestLoginNowhere checks that the login fails for a server without a supported
// login. If the configuration shows this, the login sends no request.
func TestLoginNowhere(t *testing.T) {
	h := newTokenServer(t, logintest.Rules{})
	for want, entry := range map[string]config.Server{
		"started by a command":        {Command: "x"},
		`has a header "Authorization`: {URL: h.URL, Headers: map[string]string{"authorization": "Bearer x"}},
		`older type "sse"`:            {URL: h.URL, SSE: true},
		"it is not https":             {URL: "http://tools.example/mcp"},
		"has nowhere to come back to": {URL: h.URL, OAuth: config.OAuth{CallbackPort: portOf(t, h.URL)}},
	} {
		h.entry = entry
		h.entry.Name = "s"
		_, err := h.login()
		require.ErrorContains(t, err, want)
	}
	require.Empty(t, h.Seen())
	open := httptest.NewServer(behind())
	t.Cleanup(open.Close)
	h.entry = config.Server{Name: "s", URL: open.URL}
	_, err := h.login()
	require.ErrorContains(t, err, "answers without a login")
	away := httptest.NewServer(http.RedirectHandler(h.URL, http.StatusTemporaryRedirect))
	t.Cleanup(away.Close)
	h.entry.URL = away.URL
	_, err = h.login()
	require.ErrorContains(t, err, "the server redirects")
	require.Empty(t, h.Seen())
}

func portOf(t *testing.T, link string) (port int) {
	t.Helper()
	u, err := url.Parse(link)
	require.NoError(t, err)
	_, err = fmt.Sscan(u.Port(), &port)
	require.NoError(t, err)
	return port
}

// TestLoginOfAnother: what a page that knows the port brings is not what is waited for, and does not end the waiting.
func TestLoginOfAnother(t *testing.T) {
	h := newTokenServer(t, logintest.Rules{State: "guessed"})
	h.in()
	for _, asked := range h.Asked() {
		require.NotEqual(t, "planted", asked.Code)
	}
	require.NoError(t, h.call(t.Context(), h.URL))
}

// TestLoginWaits: for as long as it may, and no longer. Meanwhile only what is waited for is answered.
func TestLoginWaits(t *testing.T) {
	h := newTokenServer(t, logintest.Rules{})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	_, err := h.store.Login(ctx, h.entry, func(page string) {
		u, err := url.Parse(page)
		require.NoError(t, err)
		back, state := u.Query().Get("redirect_uri"), u.Query().Get("state")
		go func() {
			defer cancel(enough)
			for _, to := range []string{back, strings.Replace(back, "callback", "other", 1) + "?state=" + state, back + "?state=" + state[1:]} {
				resp, err := http.Get(to)
				if err != nil || resp.StatusCode != http.StatusBadRequest || resp.Body.Close() != nil {
					cancel(fmt.Errorf("%s: %w", to, err))
				}
			}
		}()
	})
	require.ErrorIs(t, err, enough)
}

// TestClients: who the gateway is at the authorization server, in the three ways there are. What was registered at one is for no other.
func TestClients(t *testing.T) {
	known := map[string]string{"mine": "sesame-secret"}
	for name, c := range map[string]struct {
		rules        logintest.Rules
		oauth        config.OAuth
		id, secret   string
		want, issuer string
	}{
		"known":             {rules: logintest.Rules{Clients: known}, oauth: config.OAuth{ClientID: "mine", ClientSecret: "sesame-secret"}, issuer: "own", id: "mine", secret: "sesame-secret"},
		"known elsewhere":   {rules: logintest.Rules{Clients: known}, oauth: config.OAuth{ClientID: "mine", ClientSecret: "sesame-secret"}, issuer: "https://other.example", want: "does not match pre-registered"},
		"known without one": {rules: logintest.Rules{Clients: map[string]string{"open": ""}}, oauth: config.OAuth{ClientID: "open", Scopes: []string{"mine"}}, id: "open"},
		"a document":        {rules: logintest.Rules{Documents: true}, oauth: config.OAuth{MetadataURL: "https://me.example/client.json"}, id: "https://me.example/client.json"},
		"a bad document":    {rules: logintest.Rules{Documents: true}, oauth: config.OAuth{MetadataURL: "http://me.example/client.json"}, want: "HTTPS URL"},
	} {
		t.Run(name, func(t *testing.T) {
			c.rules.Expires = 5
			h := newTokenServer(t, c.rules)
			if h.entry.OAuth = c.oauth; c.issuer == "own" {
				h.entry.OAuth.Issuer = h.Base
			} else {
				h.entry.OAuth.Issuer = c.issuer
			}
			k, err := h.login()
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				require.Empty(t, h.Asked())
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.oauth.Scopes, k.Scopes)
			require.NoError(t, h.call(t.Context(), h.URL), "which renews it")
			last := h.Asked()[len(h.Asked())-1]
			require.Equal(t, logintest.Asked{Grant: "refresh_token", Resource: h.URL, Client: c.id, Secret: c.secret}, last)
		})
	}
}

// TestLogout: forgets one server and no other.
func TestLogout(t *testing.T) {
	h := newTokenServer(t, logintest.Rules{})
	was, err := h.store.Logout("s")
	require.NoError(t, err)
	require.False(t, was)
	h.in()
	was, err = h.store.Logout("other")
	require.NoError(t, err)
	require.False(t, was)
	require.NoError(t, h.call(t.Context(), h.URL))
	was, err = h.store.Logout("s")
	require.NoError(t, err)
	require.True(t, was)
	all, err := h.store.All()
	require.NoError(t, err)
	require.Empty(t, all)
	require.ErrorContains(t, h.call(t.Context(), h.URL), "needs a login")
}

// TestPrivate checks that secrets go only to HTTPS addresses, or to this
// machine if the server runs on it. A remote server cannot direct the gateway
// to a local address.
func TestPrivate(t *testing.T) {
	const far, near = "https://tools.example/mcp", "http://127.0.0.1:9/mcp"
	for _, c := range []struct {
		to, home string
		ok       bool
	}{
		{"https://login.example/token", far, true},
		{"http://login.example/token", far, false},
		{"https://127.0.0.1/token", far, false},
		{"http://[::1]:80/token", far, false},
		{"http://LOCALHOST/token", far, false},
		{"https://login.example/token", near, true},
		{"http://login.example/token", near, false},
		{"http://localhost:8/token", near, true},
		{"http://127.0.0.2/token", near, true},
		{"ftp://127.0.0.1/token", near, false},
		{"https://me@login.example/token", far, false},
		{"https:/token", far, false},
	} {
		u, err := url.Parse(c.to)
		require.NoError(t, err)
		require.Equal(t, c.ok, login.Private(u, c.home) == nil, "%s for %s", c.to, c.home)
	}
}

// TestLoginHeaders: what the configuration has for the server goes along, and what the authorization server says of scopes counts.
func TestLoginHeaders(t *testing.T) {
	var tenants []string
	far := behind()
	h := newTokenServer(t, logintest.Rules{})
	h.Server = logintest.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenants = append(tenants, r.Header.Get("X-Tenant"))
		far.ServeHTTP(w, r)
	}), logintest.Rules{Scopes: []string{"a", "b"}, Gives: "c a"})
	h.entry.URL, h.entry.Headers = h.URL, map[string]string{"X-Tenant": "t"}
	require.Equal(t, []string{"a", "c"}, h.in().Scopes)
	require.NotEmpty(t, tenants)
	for _, tenant := range tenants {
		require.Equal(t, "t", tenant)
	}
}
