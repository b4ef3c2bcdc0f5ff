package console

import (
	"context"
	"crypto/subtle"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// policy is the content security policy of every response. Nothing but the
// script and the style of this package counts, and no other site frames a page
// or gets a form.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

type visitKey struct{}

// guard refuses every request that is not one of the console's own pages in a
// browser that has entered.
func (c *Console) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers(w.Header())
		switch {
		case !c.ownHost(r):
			refuse(w, http.StatusMisdirectedRequest, "this is not the address of the console")
			return
		case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
			w.Header().Set("Allow", "GET, HEAD, POST")
			refuse(w, http.StatusMethodNotAllowed, "the console knows GET and POST")
			return
		case cross.Check(r) != nil, !c.ownPage(r):
			refuse(w, http.StatusForbidden, "another page sent this request")
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBodyBytes)
		if isOpen(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		v, ok := c.access.find(r)
		if !ok {
			c.refuseVisitor(w, r)
			return
		}
		if r.Method == http.MethodPost && !ownForm(r, v) {
			refuse(w, http.StatusForbidden, "the form is not one of this console, or it is too large; reload the page")
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitKey{}, v)))
	})
}

// isOpen reports whether a path needs no cookie: what has nothing of the
// journal.
func isOpen(path string) bool {
	return path == "/enter" || path == "/assets/console.css" || path == "/assets/console.js" || path == "/assets/icon.svg"
}

func headers(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Embedder-Policy", "require-corp")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
}

// ownHost compares the host with the one of the console, which no other name
// that leads to loopback equals.
func (c *Console) ownHost(r *http.Request) bool {
	return r.Host == c.Host || r.Host+":80" == c.Host
}

func (c *Console) origin() string { return "http://" + strings.TrimSuffix(c.Host, ":80") }

// ownPage reports whether a request comes from a page of the console, or from
// the person: a typed address or an opened link. Only the page that exchanges a
// token can be opened by a link of another page.
func (c *Console) ownPage(r *http.Request) bool {
	site, dest, origin := r.Header.Values("Sec-Fetch-Site"), r.Header.Values("Sec-Fetch-Dest"), r.Header.Values("Origin")
	if len(site) > 1 || len(dest) > 1 || len(origin) > 1 {
		return false
	}
	if len(dest) == 1 && slices.Contains([]string{"iframe", "frame", "object", "embed", "fencedframe"}, dest[0]) {
		return false
	}
	if r.Method == http.MethodPost {
		return len(origin) == 1 && origin[0] == c.origin() && (len(site) == 0 || site[0] == "same-origin")
	}
	if len(origin) == 1 && origin[0] != c.origin() {
		return false
	}
	if len(site) == 0 || site[0] == "same-origin" || site[0] == "none" {
		return true
	}
	return r.URL.Path == "/enter" && len(dest) == 1 && dest[0] == "document"
}

// ownForm reads a form and checks its token.
func ownForm(r *http.Request, v visit) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" || r.ParseForm() != nil {
		return false
	}
	given := r.PostForm["form"]
	return len(given) == 1 && subtle.ConstantTimeCompare([]byte(given[0]), []byte(v.form)) == 1
}

func refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte("remit console: " + why + "\n"))
}

// visitOf returns the visit of a request that passed guard.
func visitOf(r *http.Request) visit {
	v, _ := r.Context().Value(visitKey{}).(visit)
	return v
}
