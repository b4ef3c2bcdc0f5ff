// Package logintest is an OAuth authorization server on this machine, and a
// protected resource that needs its tokens, for tests. It is as strict as such
// servers may be: codes and refresh tokens count once, and a client that sends
// an old one loses the new ones too.
package logintest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Rules are a server's deviations from the standard, and its options.
type Rules struct {
	Expires      int               // lifetime of an access token in seconds; 0: not stated
	NoRefresh    bool              // there are no refresh tokens
	Scopes       []string          // scopes that the resource states
	Gives        string            // scopes that the server states for a token
	Clients      map[string]string // ID to secret of preregistered clients; nil: clients register
	Documents    bool              // the URL of a document is also a client ID
	Iss          string            // issuer in the redirect; "own": the real one
	SaysIss      bool              // the metadata says that iss is present
	Issuer       string            // issuer in the metadata, if not its own
	State        string            // state of a first redirect, before the right one
	Error        string            // error in the redirect instead of a code
	PageURL      string            // authorization endpoint in the metadata, if not its own
	TokenURL     string            // token endpoint in the metadata, if not its own
	Moved        string            // host to which the metadata is redirected
	Redirect     string            // target of the token endpoint's redirect; /moved is one too
	Status       int               // status of the token endpoint, with Body
	Body         string            // body of the token endpoint, or, without a Status, of the registration endpoint
	RejectTokens bool              // the resource accepts no token
	Lead         string            // target of the resource's redirect for requests with a token
	Hold         func()            // called by the token endpoint before it responds
	Wants        string            // scope that the resource requires
}

// Asked is one request to the token endpoint.
type Asked struct{ Grant, Resource, Code, Client, Secret string }

// Server is the authorization server and the resource.
type Server struct {
	URL  string // of the resource
	Base string // of the authorization server: its issuer

	mu       sync.Mutex
	rules    Rules
	codes    map[string]url.Values
	clients  map[string]string // ID to redirect URL
	families map[string]int    // of refresh tokens
	scopes   map[int]string    // of families
	spent    map[string]bool
	access   map[string]access
	n        int
	reused   int
	secrets  []string
	asked    []Asked
	seen     []string
	listener *httptest.Server
}

type access struct {
	family int
	scope  string
}

// New starts a Server whose resource is a handler.
func New(t testing.TB, behind http.Handler, rules Rules) *Server {
	t.Helper()
	s := &Server{rules: rules, codes: map[string]url.Values{}, clients: map[string]string{}, families: map[string]int{}, spent: map[string]bool{}, scopes: map[int]string{}, access: map[string]access{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", s.resource)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", s.metadata)
	mux.HandleFunc("POST /register", s.register)
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("POST /token", s.token)
	mux.HandleFunc("POST /moved", s.token)
	mux.Handle("/mcp", s.requireToken(behind))
	s.listener = httptest.NewServer(mux)
	t.Cleanup(s.listener.Close)
	s.Base, s.URL = s.listener.URL, s.listener.URL+"/mcp"
	return s
}

// Now changes the rules.
func (s *Server) Now(change func(*Rules)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.rules)
}

// Revoke ends all existing tokens.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
	clear(s.families)
}

// Forget ends the existing access tokens, and no refresh token.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
}

// Reused returns how often a client sent a used refresh token.
func (s *Server) Reused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reused
}

// Secrets returns all issued tokens, codes and secrets.
func (s *Server) Secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.secrets)
}

// Asked returns the requests to the token endpoint.
func (s *Server) Asked() []Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Seen returns the Authorization headers that the resource received.
func (s *Server) Seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Visit plays the user, who opens a page and consents.
func (s *Server) Visit(page string) {
	go func() {
		if resp, err := http.Get(page); err == nil { //nolint:noctx // a browser
			_ = resp.Body.Close()
		}
	}()
}

func (s *Server) secret(kind string) string {
	text := kind + "-" + rand.Text()
	s.secrets = append(s.secrets, text)
	return text
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (s *Server) resource(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{"resource": s.URL, "authorization_servers": []string{s.Base}, "scopes_supported": s.rules.Scopes})
}

func (s *Server) metadata(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rules.Moved != "" && r.Host != s.rules.Moved {
		http.Redirect(w, r, "http://"+s.rules.Moved+r.URL.Path, http.StatusFound)
		return
	}
	m := map[string]any{
		"issuer": s.Base, "authorization_endpoint": s.Base + "/authorize", "token_endpoint": s.Base + "/token",
		"code_challenge_methods_supported": []string{"S256"}, "response_types_supported": []string{"code"},
		"authorization_response_iss_parameter_supported": s.rules.SaysIss, "client_id_metadata_document_supported": s.rules.Documents,
	}
	if s.rules.Clients == nil {
		m["registration_endpoint"] = s.Base + "/register"
	}
	if s.rules.Issuer != "" {
		m["issuer"] = s.rules.Issuer
	}
	if s.rules.PageURL != "" {
		m["authorization_endpoint"] = s.rules.PageURL
	}
	if s.rules.TokenURL != "" {
		m["token_endpoint"] = s.rules.TokenURL
	}
	answer(w, http.StatusOK, m)
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var m struct {
		Redirects []string `json:"redirect_uris"`
		Kind      string   `json:"application_type"`
		Method    string   `json:"token_endpoint_auth_method"`
	}
	switch err := json.NewDecoder(r.Body).Decode(&m); {
	case s.rules.Body != "" && s.rules.Status == 0:
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(s.rules.Body))
	case err != nil || len(m.Redirects) != 1 || m.Kind != "native":
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_redirect_uri"})
	default:
		id := "client-" + rand.Text()
		s.clients[id] = m.Redirects[0]
		answer(w, http.StatusCreated, map[string]any{"client_id": id, "redirect_uris": m.Redirects, "token_endpoint_auth_method": m.Method})
	}
}

func (s *Server) known(id, redirect string) bool {
	if strings.HasPrefix(id, "https://") {
		return s.rules.Documents
	}
	if _, ok := s.rules.Clients[id]; ok {
		return true
	}
	return s.clients[id] == redirect
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	if !s.known(q.Get("client_id"), q.Get("redirect_uri")) || q.Get("code_challenge_method") != "S256" || q.Get("resource") != s.URL {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	back := url.Values{"state": {q.Get("state")}}
	if s.rules.Error != "" {
		back.Set("error", s.rules.Error)
		back.Set("error_description", "described by somebody")
	} else {
		code := s.secret("code")
		s.codes[code] = q
		back.Set("code", code)
	}
	switch s.rules.Iss {
	case "":
	case "own":
		back.Set("iss", s.Base)
	default:
		back.Set("iss", s.rules.Iss)
	}
	if s.rules.State != "" { // another program knows the port
		bad := url.Values{"state": {s.rules.State}, "code": {"planted"}}
		if resp, err := http.Get(q.Get("redirect_uri") + "?" + bad.Encode()); err == nil { //nolint:noctx // a browser
			_ = resp.Body.Close()
		}
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.ParseForm() != nil {
		return
	}
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	s.asked = append(s.asked, Asked{r.PostForm.Get("grant_type"), r.PostForm.Get("resource"), r.PostForm.Get("code"), id, secret})
	if hold := s.rules.Hold; hold != nil {
		s.mu.Unlock()
		hold()
		s.mu.Lock()
	}
	switch {
	case s.rules.Redirect != "" && r.URL.Path == "/token":
		http.Redirect(w, r, s.rules.Redirect, http.StatusTemporaryRedirect)
	case s.rules.Status != 0:
		w.WriteHeader(s.rules.Status)
		_, _ = w.Write([]byte(s.rules.Body))
	case s.rules.Clients != nil && s.rules.Clients[id] != secret:
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
	case r.PostForm.Get("resource") != s.URL:
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_target"})
	case r.PostForm.Get("grant_type") == "refresh_token":
		s.refresh(w, r.PostForm.Get("refresh_token"))
	default:
		s.exchange(w, r.PostForm)
	}
}

func (s *Server) exchange(w http.ResponseWriter, form url.Values) {
	q, ok := s.codes[form.Get("code")]
	delete(s.codes, form.Get("code"))
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	if !ok || q.Get("redirect_uri") != form.Get("redirect_uri") || q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "no: " + form.Get("code")})
		return
	}
	s.n++
	s.scopes[s.n] = q.Get("scope")
	s.give(w, s.n, q.Get("scope"))
}

func (s *Server) refresh(w http.ResponseWriter, token string) {
	family, ok := s.families[token]
	if !ok {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "no: " + token})
		return
	}
	if s.spent[token] { // the holder of the next one may have stolen it
		s.reused++
		for other, of := range s.families {
			if of == family {
				delete(s.families, other)
			}
		}
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	s.spent[token] = true
	s.give(w, family, s.scopes[family])
}

func (s *Server) give(w http.ResponseWriter, family int, scope string) {
	token := s.secret("access")
	s.access[token] = access{family, scope}
	m := map[string]any{"access_token": token, "token_type": "Bearer"}
	if !s.rules.NoRefresh {
		next := s.secret("refresh")
		s.families[next] = family
		m["refresh_token"] = next
	}
	if s.rules.Gives != "" {
		m["scope"] = s.rules.Gives
	}
	if s.rules.Expires != 0 {
		m["expires_in"] = s.rules.Expires
	}
	answer(w, http.StatusOK, m)
}

// requireToken accepts requests with a token.
func (s *Server) requireToken(behind http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Header.Get("Authorization"))
		a, ok := s.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		deaf, wants, lead := s.rules.RejectTokens, s.rules.Wants, s.rules.Lead
		s.mu.Unlock()
		at := `resource_metadata="` + s.Base + `/.well-known/oauth-protected-resource/mcp"`
		switch {
		case !ok || deaf:
			w.Header().Set("WWW-Authenticate", "Bearer "+at)
			w.WriteHeader(http.StatusUnauthorized)
		case wants != "" && !slices.Contains(strings.Fields(a.scope), wants):
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+wants+`", `+at)
			w.WriteHeader(http.StatusForbidden)
		case lead != "":
			http.Redirect(w, r, lead, http.StatusTemporaryRedirect)
		default:
			behind.ServeHTTP(w, r)
		}
	})
}
