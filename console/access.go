package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	cookieName   = "remit_console"
	tokenTime    = 10 * time.Minute // in which a token can be used
	visitTime    = 12 * time.Hour   // in which a cookie is valid
	secretBytes  = 32
	maxTokens    = 32 // unused tokens; a further one replaces the oldest
	maxVisits    = 32
	maxBodyBytes = 64 << 10
)

// visit is a browser that exchanged a token for a cookie.
type visit struct {
	cookie [sha256.Size]byte // digest
	form   string            // token of its forms
	until  time.Time
}

type token struct {
	digest [sha256.Size]byte
	until  time.Time
}

// access holds digests of the secrets that open the pages.
type access struct {
	now    func() time.Time
	random func([]byte)

	mu     sync.Mutex // never held across a wait
	tokens []token
	visits []visit
}

func newAccess(now func() time.Time, random func([]byte)) *access {
	return &access{now: now, random: random}
}

func (a *access) secret() string {
	b := make([]byte, secretBytes)
	a.random(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// newToken returns a token that counts once.
func (a *access) newToken() string {
	text := a.secret()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tokens = append(a.tokens, token{sha256.Sum256([]byte(text)), a.now().Add(tokenTime)})
	a.tokens = a.tokens[max(0, len(a.tokens)-maxTokens):]
	return text
}

// enter uses up a token and returns a cookie.
func (a *access) enter(text string) (cookie string, ok bool) {
	digest := sha256.Sum256([]byte(text))
	cookie, form := a.secret(), a.secret()
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.tokens, func(t token) bool { return subtle.ConstantTimeCompare(t.digest[:], digest[:]) == 1 })
	if i < 0 {
		return "", false
	}
	valid := a.now().Before(a.tokens[i].until)
	a.tokens = slices.Delete(a.tokens, i, i+1)
	if !valid {
		return "", false
	}
	a.visits = append(a.visits, visit{sha256.Sum256([]byte(cookie)), form, a.now().Add(visitTime)})
	a.visits = a.visits[max(0, len(a.visits)-maxVisits):]
	return cookie, true
}

// find returns the visit that the cookie of a request belongs to. A request with
// two such cookies has none: another server can have set one of them.
func (a *access) find(r *http.Request) (visit, bool) {
	all := r.CookiesNamed(cookieName)
	if len(all) != 1 {
		return visit{}, false
	}
	digest := sha256.Sum256([]byte(all[0].Value))
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, v := range a.visits {
		if subtle.ConstantTimeCompare(v.cookie[:], digest[:]) == 1 && a.now().Before(v.until) {
			return v, true
		}
	}
	return visit{}, false
}

// list returns how many tokens are unused, and the visits, the newest first.
func (a *access) list(own visit) (tokens int, all []visitLine) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	for _, t := range a.tokens {
		if now.Before(t.until) {
			tokens++
		}
	}
	for _, v := range slices.Backward(a.visits) {
		if now.Before(v.until) {
			all = append(all, visitLine{when(v.until), v.cookie == own.cookie})
		}
	}
	return tokens, all
}

// leaveOthers ends all visits but one, and all tokens.
func (a *access) leaveOthers(v visit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tokens = nil
	a.visits = slices.DeleteFunc(a.visits, func(o visit) bool { return o.cookie != v.cookie })
}

// leave ends the visit of a cookie.
func (a *access) leave(v visit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.visits = slices.DeleteFunc(a.visits, func(o visit) bool { return o.cookie == v.cookie })
}
