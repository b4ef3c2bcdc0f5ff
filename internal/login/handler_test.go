package login_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/login"
	"github.com/remit-dev/remit/internal/proof/logintest"
	"github.com/remit-dev/remit/mcp/gateway/config"
)

// wanted is the want of a login that an error is about.
func wanted(t *testing.T, err error) *config.LoginError {
	t.Helper()
	var e *config.LoginError
	require.ErrorAs(t, err, &e)
	require.Equal(t, "s", e.Server)
	require.Equal(t, "remit gateway login s", e.Fix)
	return e
}

// TestRenew: a token that has ended is renewed before it is sent, and so is the next one.
func TestRenew(t *testing.T) {
	h := newTokenServer(t, logintest.Rules{Expires: 5})
	k := h.in()
	first := h.Seen()
	require.NoError(t, h.call(t.Context(), h.URL))
	require.NoError(t, h.call(t.Context(), h.URL))
	for _, sent := range h.Seen()[len(first):] {
		require.NotContains(t, first, sent, "it had ended")
	}
	require.Zero(t, h.Reused())
	all, err := h.store.All()
	require.NoError(t, err)
	require.True(t, all[0].Renews)
	require.True(t, all[0].Expires.After(k.Expires))
}

// TestRenewTwoGateways: two processes renew the same token again and again; the server takes each refresh token once, and all of them when one comes twice.
func TestRenewTwoGateways(t *testing.T) {
	h := newTokenServer(t, logintest.Rules{Expires: 5})
	h.in()
	self, err := os.Executable()
	require.NoError(t, err)
	type child struct {
		*exec.Cmd
		begin func() error
	}
	var children []child
	for range 2 {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "LOGIN_FOLDER="+h.store.Folder, "LOGIN_URL="+h.URL)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err, "it is there")
		children = append(children, child{cmd, in.Close})
	}
	for _, c := range children {
		require.NoError(t, c.begin())
	}
	for _, c := range children {
		require.NoError(t, c.Wait())
	}
	require.Zero(t, h.Reused())
	require.NoError(t, h.call(t.Context(), h.URL))
	require.Greater(t, len(h.Asked()), 2*many, "each of them renewed it")
}

const many = 25

// renewMany is one of the processes.
func renewMany(folder, url string) error {
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	at := login.Store{Folder: folder}.Handler("s", url)
	for range many {
		source, err := at.TokenSource(context.Background())
		if err != nil {
			return err
		}
		if t, err := source.Token(); err != nil || t.AccessToken == "" {
			return fmt.Errorf("no token: %w", err)
		}
	}
	return nil
}

// TestRenewAtOnce: so it is within one process. One renews, and those who waited take what it got.
func TestRenewAtOnce(t *testing.T) {
	h := newTokenServer(t, logintest.Rules{Expires: 3600})
	h.in()
	h.Forget()
	h.change(func(r map[string]any) { r["issued"] = time.Now().Add(-time.Hour) })
	before := len(h.Asked())
	ends := make(chan error)
	for range 8 {
		go func() { ends <- h.call(t.Context(), h.URL) }()
	}
	for range 8 {
		require.NoError(t, <-ends)
	}
	require.Equal(t, before+1, len(h.Asked()))
}

// TestRenewToTheEnd: a gateway that is closed waits for the token that it has asked for, and asks for no other.
func TestRenewToTheEnd(t *testing.T) {
	h := newTokenServer(t, logintest.Rules{Expires: 5})
	h.in()
	asked, closing := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(closing) })
	t.Cleanup(release)
	h.Now(func(r *logintest.Rules) {
		r.Hold = func() {
			close(asked)
			<-closing
		}
	})
	at := h.store.Handler("s", h.URL)
	closer, ok := at.(io.Closer)
	require.True(t, ok)
	got := make(chan error, 1)
	go func() {
		_, err := at.TokenSource(t.Context())
		got <- err
	}()
	<-asked
	go func() { // it lets the renewal end once the closing handler refuses a token
		_, err := at.TokenSource(t.Context())
		if errors.Is(err, config.ErrNotSent) {
			release()
		}
	}()
	_, before := h.file()
	require.NoError(t, closer.Close())
	_, after := h.file()
	require.NotEqual(t, before["refresh_token"], after["refresh_token"])
	require.NoError(t, <-got)
	require.NoError(t, closer.Close(), "twice")
	_, err := at.TokenSource(t.Context())
	require.ErrorContains(t, err, "is being closed")
}

// TestRevoked: where the token is refused and no other is to be had, a login is wanted, at once, and after it all is well.
func TestRevoked(t *testing.T) {
	for name, rules := range map[string]logintest.Rules{"renewed before": {Expires: 5}, "renewed when refused": {}, "never renewed": {NoRefresh: true}, "ended": {NoRefresh: true, Expires: 5}} {
		t.Run(name, func(t *testing.T) {
			h := newTokenServer(t, rules)
			h.in()
			renewed, ok := h.store.Handler("s", h.URL).(interface{ Renewed() bool })
			require.True(t, ok)
			require.True(t, renewed.Renewed())
			h.Revoke()
			h.change(func(r map[string]any) { r["issued"] = time.Now().Add(-time.Hour) })
			err := h.call(t.Context(), h.URL)
			why := "the token is not renewed any more (invalid_grant)"
			if rules.NoRefresh {
				why = "the token has ended, and nothing was given to renew it with"
			}
			require.Equal(t, why, wanted(t, err).Why)
			h.silent(err.Error())
			require.False(t, renewed.Renewed())
			all, err := h.store.All()
			require.NoError(t, err)
			require.Equal(t, why, all[0].Needs)
			asked := len(h.Asked())
			require.Equal(t, why, wanted(t, h.call(t.Context(), h.URL)).Why, "and says so again")
			require.Len(t, h.Asked(), asked, "nobody is asked in vain")
			_, record := h.file()
			require.NotContains(t, record, "access_token")

			h.Now(func(r *logintest.Rules) { r.Expires = 0 })
			h.in()
			require.True(t, renewed.Renewed())
			require.NoError(t, h.call(t.Context(), h.URL))
		})
	}
}

// TestRefusedToken: one that the server refuses though it has not ended is renewed; one that was just given is not.
func TestRefusedToken(t *testing.T) {
	h := newTokenServer(t, logintest.Rules{Expires: 3600})
	h.in()
	h.Forget()
	renewed, ok := h.store.Handler("s", h.URL).(interface{ Renewed() bool })
	require.True(t, ok)
	require.True(t, renewed.Renewed())
	require.Equal(t, "it refuses the token that it was just given", wanted(t, h.call(t.Context(), h.URL)).Why)
	require.False(t, renewed.Renewed())
	h.change(func(r map[string]any) { r["issued"] = time.Now().Add(-time.Hour) })
	require.NoError(t, h.call(t.Context(), h.URL))
	all, err := h.store.All()
	require.NoError(t, err)
	require.Empty(t, all[0].Needs)

	h.Now(func(r *logintest.Rules) { r.RejectTokens = true })
	asked := len(h.Asked())
	_ = wanted(t, h.call(t.Context(), h.URL))
	_ = wanted(t, h.call(t.Context(), h.URL))
	require.Len(t, h.Asked(), asked, "it is not asked again and again")
}

// TestMoreRights: a server that wants more than it was given says what, and the next login asks for that and for what there was.
func TestMoreRights(t *testing.T) {
	h := newTokenServer(t, logintest.Rules{Scopes: []string{"a"}})
	h.in()
	h.Now(func(r *logintest.Rules) { r.Wants = "b" })
	require.Equal(t, "it wants more rights than it was given: b", wanted(t, h.call(t.Context(), h.URL)).Why)
	require.ElementsMatch(t, []string{"a", "b"}, h.in().Scopes)
	require.NoError(t, h.call(t.Context(), h.URL))
	require.Len(t, h.pages, 2)
}

// TestNotNow: an authorization server that is ill is no reason to log in. Nothing is sent, and the next time it is tried again.
func TestNotNow(t *testing.T) {
	h := newTokenServer(t, logintest.Rules{Expires: 5})
	h.in()
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusOK} {
		h.Now(func(r *logintest.Rules) { r.Status, r.Body = status, "SECRET" })
		seen := len(h.Seen())
		err := h.call(t.Context(), h.URL)
		require.ErrorIs(t, err, config.ErrNotSent)
		var login *config.LoginError
		require.False(t, errors.As(err, &login))
		require.NotContains(t, err.Error(), "SECRET")
		h.silent(err.Error())
		require.Len(t, h.Seen(), seen)
	}
	h.Now(func(r *logintest.Rules) { r.Status, r.Redirect = 0, "http://localhost:1/" })
	require.ErrorContains(t, h.call(t.Context(), h.URL), "redirects to where this may not go")
	h.Now(func(r *logintest.Rules) { r.Redirect = "" })
	require.NoError(t, h.call(t.Context(), h.URL))
}

// TestElsewhere: a token goes to the URL that it was given for. Another URL, or another server's name, has none.
func TestElsewhere(t *testing.T) {
	h := newTokenServer(t, logintest.Rules{})
	h.in()
	other := logintest.New(t, behind(), logintest.Rules{})
	_ = wanted(t, h.call(t.Context(), other.URL))
	for _, sent := range other.Seen() {
		require.Empty(t, sent)
	}
	source, err := h.store.Handler("S", h.URL).TokenSource(t.Context())
	require.NoError(t, err)
	require.Nil(t, source)

	// Nor by a file that was put there under the other's name.
	was, err := h.store.Logout("s")
	require.NoError(t, err)
	require.True(t, was)
	_ = wanted(t, h.call(t.Context(), other.URL))
	theirs, _ := h.file()
	h.in()
	mine, err := filepath.Glob(filepath.Join(h.store.Folder, "*.json"))
	require.NoError(t, err)
	require.Len(t, mine, 2)
	for _, name := range mine {
		if name != theirs {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(theirs, text, 0o600))
		}
	}
	require.ErrorContains(t, h.call(t.Context(), other.URL), "is of another server or URL")
	for _, sent := range other.Seen() {
		require.Empty(t, sent)
	}
}

// TestFiles: what cannot be read, or others could read, is no token, and says how to mend it.
func TestFiles(t *testing.T) {
	h := newTokenServer(t, logintest.Rules{})
	h.in()
	path, _ := h.file()
	if runtime.GOOS != "windows" {
		require.NoError(t, os.Chmod(path, 0o640))
		err := h.call(t.Context(), h.URL)
		require.ErrorIs(t, err, config.ErrNotSent)
		require.ErrorContains(t, err, "others can read "+path)
		require.NoError(t, os.Chmod(path, 0o600))
	}
	require.NoError(t, h.call(t.Context(), h.URL))
	for _, text := range []string{"", "{}", `{"v": 2}`, `{"v": 1, "server": "s", "more": 1}`, `{"v": 1} x`} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.ErrorContains(t, h.call(t.Context(), h.URL), "is not a login that this version kept")
		all, err := h.store.All()
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Equal(t, "s", all[0].Server)
		require.Contains(t, all[0].Needs, "is not a login")
	}
	h.in()
	require.NoError(t, h.call(t.Context(), h.URL))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	was, err := h.store.Logout("s")
	require.NoError(t, err)
	require.True(t, was)
	require.NoFileExists(t, path)

	// A folder that is none.
	h.store.Folder = filepath.Join(path+".lock", "x")
	require.ErrorIs(t, h.call(t.Context(), h.URL), config.ErrNotSent)
	_, err = h.login()
	require.Error(t, err)
	_, err = h.store.All()
	require.Error(t, err)
	_, err = h.store.Logout("s")
	require.Error(t, err)
}

// TestForbidden: a server that forbids something for another reason says so itself.
func TestForbidden(t *testing.T) {
	h := newTokenServer(t, logintest.Rules{})
	answer := func(status int, header string) error {
		req := httptest.NewRequest(http.MethodPost, h.URL, nil)
		resp := &http.Response{StatusCode: status, Header: http.Header{"Www-Authenticate": {header}}, Body: http.NoBody}
		return h.store.Handler("s", h.URL).Authorize(t.Context(), req, resp)
	}
	require.NoError(t, answer(http.StatusForbidden, "Bearer"))
	require.NoError(t, answer(http.StatusForbidden, `Bearer error="nonsense`))
	_ = wanted(t, answer(http.StatusUnauthorized, `Bearer error="nonsense`))
	long := strings.Repeat("x", 1000) + "\x1b"
	why := wanted(t, answer(http.StatusForbidden, `Bearer error="insufficient_scope", scope="`+long+`"`)).Why
	require.Less(t, len(why), 400)
	_, record := h.file()
	text, err := json.Marshal(record)
	require.NoError(t, err)
	require.NotContains(t, string(text), "\x1b")
	h.in()
	require.NoError(t, answer(http.StatusForbidden, `Bearer error="insufficient_scope"`), "somebody logged in meanwhile")
}
