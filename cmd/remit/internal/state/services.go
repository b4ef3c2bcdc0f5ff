package state

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/ctxperm/secrets"
	"github.com/remit-dev/remit/ctxperm/secrets/keyring"
	"github.com/remit-dev/remit/ctxperm/secrets/vault"
	"github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// Services selects the services and secrets that calls can use.
type Services struct {
	file    string
	secrets []string // NAME=SOURCE
}

// AddServiceFlags adds the flags of services and secrets.
func AddServiceFlags(cmd *cobra.Command, s *Services) {
	AddServicesFlag(cmd, s)
	cmd.Flags().StringArrayVar(&s.secrets, "secret", nil, "secret for calls, as `NAME=SOURCE`: env:VARIABLE, keyring:SERVICE/USER or file:PATH; NAME alone is a secret of remit secret set")
}

// AddServicesFlag adds the flag for the file of services.
func AddServicesFlag(cmd *cobra.Command, s *Services) {
	cmd.Flags().StringVar(&s.file, "services", "", "`FILE` with networks, credentials and calls of services: docs/guides/http.md")
}

// servicesFile is the file of --services.
type servicesFile struct {
	Allow       []string           `json:"allow"`       // networks in addition to the public internet
	CA          string             `json:"ca"`          // certificates that replace those of the system
	Secrets     map[string]string  `json:"secrets"`     // sources by name, as for --secret
	Identity    string             `json:"identity"`    // key file of encrypted files of secrets
	Credentials []web.Credential   `json:"credentials"` // the secret for each origin
	Media       []string           `json:"media"`       // media types of responses that are read; empty: all
	Calls       []builtin.HTTPCall `json:"calls"`       // tools that call services
}

// Options returns the drivers and tools that the flags name. Its files must lie
// outside the folders, because calls could change what they can reach.
func (s *Services) Options(a *cli.App, folders []string) ([]agent.Option, error) {
	f, err := s.read(folders)
	if err != nil {
		return nil, err
	}
	sources := map[string]secrets.Source{}
	for name, text := range f.Secrets {
		if sources[name], err = f.source(a, folders, name, text, filepath.Dir(s.file)); err != nil {
			return nil, err
		}
	}
	for _, text := range s.secrets {
		name, from, _ := strings.Cut(text, "=")
		if sources[name], err = f.source(a, folders, name, from, "."); err != nil {
			return nil, err
		}
	}
	store, err := secrets.New(sources)
	if err != nil {
		return nil, cli.UsageProblem("--secret: " + err.Error())
	}
	client, err := f.client(store, filepath.Dir(s.file))
	if err != nil {
		return nil, s.bad(err)
	}
	calls, err := s.tools(f)
	if err != nil {
		return nil, err
	}
	return []agent.Option{agent.Driver(store), agent.Driver(client), agent.Tools(calls...)}, nil
}

// Tools returns the tools that call services. It reads no secret.
func (s *Services) Tools() ([]tool.Tool, error) {
	f, err := s.read(nil)
	if err != nil {
		return nil, err
	}
	return s.tools(f)
}

func (s *Services) tools(f servicesFile) ([]tool.Tool, error) {
	calls := make([]tool.Tool, 0, len(f.Calls))
	for _, c := range f.Calls {
		made, err := builtin.HTTPTool(c)
		if err != nil {
			return nil, s.bad(err)
		}
		calls = append(calls, made)
	}
	return calls, nil
}

func (s *Services) bad(err error) error {
	return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("the file of services %q cannot be used", s.file), Why: err.Error(), Fix: "docs/guides/http.md says what is in it"}
}

func (s *Services) read(folders []string) (f servicesFile, err error) {
	if s.file == "" {
		return f, nil
	}
	if err := outside(folders, s.file, "the file of services", "calls could change what they may reach"); err != nil {
		return f, err
	}
	data, err := os.ReadFile(s.file)
	if err == nil {
		err = canon.Decode(data, &f)
	}
	if err != nil {
		return f, s.bad(errors.New(cli.PlainError(err)))
	}
	return f, nil
}

// source parses the source of a secret.
func (f *servicesFile) source(a *cli.App, folders []string, name, text, dir string) (secrets.Source, error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch {
	case text == "":
		return keyring.Source(keyring.Service, name), nil
	case kind == "env" && rest != "":
		return secrets.Env(rest, func(variable string) (string, bool) {
			value := a.Getenv(variable)
			return value, value != ""
		}), nil
	case kind == "keyring" && strings.Contains(rest, "/"):
		service, user, _ := strings.Cut(rest, "/")
		return keyring.Source(service, user), nil
	case kind == "file" && rest != "":
		path, identity := within(dir, rest), f.Identity
		if identity != "" {
			identity = within(dir, identity)
		}
		identity = IdentityFile(a, path, identity)
		for _, file := range []string{path, identity} {
			if err := outside(folders, file, "the file of secrets", "calls could read or replace it"); err != nil {
				return nil, err
			}
		}
		return vault.At(path, identity).Source(name), nil
	}
	return nil, &cli.Problem{
		Code: cli.ExitUsage, What: fmt.Sprintf("secret %q has no source that can be read", name),
		Why: "valid are env:VARIABLE, keyring:SERVICE/USER and file:PATH", Fix: "write NAME=SOURCE, never the value itself",
	}
}

func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// IdentityFile returns the key file of an encrypted file.
func IdentityFile(a *cli.App, path, given string) string {
	if given == "" {
		given = a.Getenv("REMIT_IDENTITY")
	}
	if given == "" {
		given = path + ".key"
	}
	return given
}

func (f *servicesFile) client(store *secrets.Store, dir string) (*web.Client, error) {
	o := web.Options{Secrets: store, Credentials: f.Credentials, Media: f.Media}
	for _, text := range f.Allow {
		n, err := web.ParseNetwork(text)
		if err != nil {
			return nil, err
		}
		o.Allow = append(o.Allow, n)
	}
	if f.CA != "" {
		data, err := os.ReadFile(within(dir, f.CA))
		if err != nil {
			return nil, err
		}
		o.CAs = x509.NewCertPool()
		if !o.CAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%s holds no certificate", f.CA)
		}
	}
	return web.New(o)
}

// Names lists the known secrets.
func (s *Services) Names(folders []string) ([]string, error) {
	f, err := s.read(folders)
	if err != nil {
		return nil, err
	}
	all := slices.Collect(maps.Keys(f.Secrets))
	for _, text := range s.secrets {
		name, _, _ := strings.Cut(text, "=")
		all = append(all, name)
	}
	return append([]string{}, all...), nil
}

// flags returns the flags with which another command reaches the same services.
func (s *Services) flags() (flags []string) {
	if s.file != "" {
		flags = append(flags, "--services", s.file)
	}
	for _, text := range s.secrets {
		flags = append(flags, "--secret", text)
	}
	return flags
}
