package login

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
)

// Store is a folder of tokens. It is safe for concurrent use by any number of
// processes.
type Store struct {
	Folder string                     // created if missing, for its owner alone
	Fix    func(server string) string // returns the login command for errors; nil: errors name none
}

// Info describes the login at one server, without secrets.
type Info struct {
	Server, URL string
	Resource    string // that the token is valid for
	Scopes      []string
	Expires     time.Time // zero: unknown
	Renews      bool      // it renews without a login
	Needs       string    // why a login is needed; empty: none is
}

// record is the content of one file.
type record struct {
	V         int       `json:"v"`
	Server    string    `json:"server"`
	URL       string    `json:"url"` // of the server: the only receiver of the token
	Resource  string    `json:"resource,omitempty"`
	Client    client    `json:"client"`
	Scopes    []string  `json:"scopes,omitempty"`
	Access    string    `json:"access_token,omitempty"`
	Refresh   string    `json:"refresh_token,omitempty"`
	Expires   time.Time `json:"expires"`
	Issued    time.Time `json:"issued"`
	Needs     string    `json:"needs,omitempty"`     // why a login is needed
	Challenge []string  `json:"challenge,omitempty"` // of the server's rejection
}

// client is the gateway's registration at an authorization server.
type client struct {
	ID       string `json:"id,omitempty"`
	Secret   string `json:"secret,omitempty"`
	Style    int    `json:"style,omitempty"` // an oauth2.AuthStyle
	TokenURL string `json:"token_url,omitempty"`
}

func (r record) kept() Info {
	return Info{Server: r.Server, URL: r.URL, Resource: r.Resource, Scopes: r.Scopes, Expires: r.Expires, Renews: r.Refresh != "", Needs: r.Needs}
}

// counts reports whether the record has an unexpired token.
func (r record) counts() bool {
	return (&oauth2.Token{AccessToken: r.Access, Expiry: r.Expires}).Valid()
}

// take stores a new token in the record.
func (r *record) take(t *oauth2.Token) {
	r.Access, r.Refresh, r.Expires, r.Issued = t.AccessToken, t.RefreshToken, t.Expiry.UTC(), time.Now().UTC()
	r.Needs, r.Challenge = "", nil
	if given, ok := t.Extra("scope").(string); ok && given != "" {
		r.Scopes = strings.Fields(given)
	}
	slices.Sort(r.Scopes)
}

const ending = ".json"

// name returns the file name for a server at a URL. Another URL has another
// file, so it does not get the token.
func name(server, url string) string {
	return server + "-" + strings.TrimPrefix(string(canon.Sum("remit.login", []byte(server), []byte(url))), "sha256:")[:16] + ending
}

var named = regexp.MustCompile(`^(.+)-[0-9a-f]{16}\.json$`)

func (s Store) path(server, url string) string { return filepath.Join(s.Folder, name(server, url)) }

// read returns the record of a server. A zero record means that there is none.
func (s Store) read(server, url string) (record, error) {
	nothing := record{V: 1, Server: server, URL: url}
	r, err := load(s.path(server, url))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nothing, nil
	case err != nil:
		return nothing, err
	case r.Server != server || r.URL != url:
		return nothing, fmt.Errorf("what is kept of the login at %s is of another server or URL; log out there, and in again", server)
	}
	return r, nil
}

func load(path string) (r record, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return r, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return r, fmt.Errorf("others can read %s, which holds tokens; log out at the server, and in again, since they may have", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if canon.Decode(text, &r) != nil || r.V != 1 {
		return record{}, fmt.Errorf("%s is not a login that this version kept; log out at the server, and in again", path)
	}
	return r, nil
}

// write stores a record durably. The caller holds the lock.
func (s Store) write(r record) (err error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	root, err := disk.OpenRoot(s.Folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	to := name(r.Server, r.URL)
	draft := to + ".new"
	if err := root.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a killed process
		return err
	}
	f, err := root.Create(draft, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(filepath.Join(s.Folder, draft), filepath.Join(s.Folder, to))
	}
	if err != nil {
		return errors.Join(err, root.Remove(draft))
	}
	return root.SyncDir(".")
}

// All lists the stored logins. It lists an unreadable record as one that needs
// a login.
func (s Store) All() ([]Info, error) {
	entries, err := os.ReadDir(s.Folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Info
	for _, e := range entries {
		parts := named.FindStringSubmatch(e.Name())
		if parts == nil {
			continue
		}
		r, err := load(filepath.Join(s.Folder, e.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed by a logout meanwhile
		case err != nil:
			all = append(all, Info{Server: parts[1], Needs: err.Error()})
		default:
			all = append(all, r.kept())
		}
	}
	return all, nil
}

// Logout removes all records of a server, at any URL. It reports whether there
// were any. It does not notify the authorization server.
func (s Store) Logout(server string) (was bool, err error) {
	entries, err := os.ReadDir(s.Folder)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	for _, e := range entries {
		if parts := named.FindStringSubmatch(e.Name()); parts == nil || parts[1] != server {
			continue
		}
		err = errors.Join(err, s.forget(filepath.Join(s.Folder, e.Name())))
		was = true
	}
	return was, err
}

func (s Store) forget(path string) (err error) {
	unlock, err := lockStore(path)
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	root, err := disk.OpenRoot(s.Folder)
	if err != nil {
		return err
	}
	return errors.Join(root.SyncDir("."), root.Close())
}

// holding takes the lock of a server's record, and creates the folder for it.
func (s Store) holding(server, url string) (unlock func(), err error) {
	if err := os.MkdirAll(s.Folder, 0o700); err != nil {
		return nil, err
	}
	return lockStore(s.path(server, url))
}
