package login

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/remit-dev/remit/internal/canon"
)

// wait bounds the time of an authorization server's response.
const wait = 30 * time.Second

// browserless returns the HTTP client for authorization servers. Its requests
// contain codes, secrets and refresh tokens, so it follows a redirect only for
// a read, and only on the same host.
func browserless(home string) *http.Client {
	return &http.Client{
		Timeout: wait,
		// The SDK checks the addresses of host names only without a custom
		// dialer. Proxy is the remaining hook that sees each request.
		Transport: &http.Transport{
			Proxy:             func(r *http.Request) (*url.URL, error) { return nil, private(r.URL, home) },
			DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: wait,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			first := via[0]
			if first.Method != http.MethodGet || r.URL.Host != first.URL.Host || r.URL.Scheme != first.URL.Scheme || len(via) > 5 {
				return errors.New("the authorization server redirects to where this may not go")
			}
			return nil
		},
	}
}

// private rejects a URL without encryption. For a server elsewhere, it also
// rejects URLs of this machine. Home is the URL of the server.
func private(u *url.URL, home string) error {
	if u.Hostname() == "check-proxy-existence.com" { // the SDK's probe for a proxy
		return nil
	}
	at, err := url.Parse(home)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil:
		return errors.New("it is no URL that a token could be had from")
	case loopback(u) && !loopback(at):
		return fmt.Errorf("%s is on this machine, and the server is not", u.Host)
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u)):
		return fmt.Errorf("others could read along at %s://%s: it is not https", u.Scheme, u.Host)
	}
	return nil
}

func loopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback()
}

// refused returns why an authorization server gave no token, if repeating the
// request cannot help; otherwise "".
func refused(err error) string {
	var e *oauth2.RetrieveError
	if !errors.As(err, &e) || e.Response == nil {
		return ""
	}
	status := e.Response.StatusCode
	if status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooManyRequests {
		return ""
	}
	return errorText(e.ErrorCode, status)
}

// errorText returns the text of an OAuth error. It omits the description, which is
// foreign text and can repeat the request.
func errorText(code string, status int) string {
	if len(code) > 64 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz_") != "" {
		code = ""
	}
	if code == "" {
		return fmt.Sprintf("status %d", status)
	}
	return code
}

// plain returns an error without the authorization server's response, which the
// SDK's errors repeat: it can contain a token or a secret.
func plain(err error) error {
	var token *oauth2.RetrieveError
	var registration *oauthex.ClientRegistrationError
	var address *url.Error
	text := err.Error()
	switch {
	case errors.As(err, &token):
		status := 0
		if token.Response != nil {
			status = token.Response.StatusCode
		}
		return errors.New("the authorization server gives no token: " + errorText(token.ErrorCode, status))
	case errors.As(err, &registration):
		return errors.New("the authorization server does not register the gateway: " + errorText(registration.ErrorCode, http.StatusBadRequest) + unregistered)
	case errors.As(err, &address):
		return errors.New(canon.Printable(address.Err.Error(), 512))
	case strings.Contains(text, "register client"):
		return errors.New("the authorization server does not register the gateway" + unregistered)
	case strings.Contains(text, "no configured client registration"):
		return errors.New("the authorization server does not know the gateway, and registers no clients" + unregistered)
	case strings.Contains(text, "token exchange"):
		return errors.New("the authorization server gives no token: its answer is none")
	}
	return errors.New(canon.Printable(text, 512))
}

const unregistered = `; register one by hand, and give its "clientId" in "oauth" of the server's entry`
