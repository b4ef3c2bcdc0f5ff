package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/ctxperm/secrets"
	"github.com/remit-dev/remit/ctxperm/secrets/keyring"
	"github.com/remit-dev/remit/ctxperm/secrets/vault"
	"github.com/remit-dev/remit/perm"
)

// secretStore stores secrets: a keyring or an encrypted file.
type secretStore interface {
	Set(name, value string) error
	Remove(name string) error
	Names() ([]string, error)
}

// systemKeyring is the keyring of the user.
type systemKeyring struct{}

func (systemKeyring) Set(name, value string) error { return keyring.Set(name, value) }
func (systemKeyring) Remove(name string) error     { return keyring.Remove(name) }
func (systemKeyring) Names() ([]string, error)     { return keyring.Names() }

// secretFlags selects the store.
type secretFlags struct {
	file, identity string
	json           bool
}

func (f *secretFlags) add(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&f.file, "file", "", "use the encrypted file `PATH`, not the system's keyring")
	cmd.Flags().StringVar(&f.identity, "identity", "", "`FILE` with the key of the encrypted file; store it in another place (default: REMIT_IDENTITY, or PATH.key)")
	cmd.Flags().BoolVar(&f.json, "json", false, "write one JSON object")
	return cmd
}

// secretRecord is the JSON form of a stored or removed secret.
type secretRecord struct {
	Name string `json:"name"`
	Kept bool   `json:"kept"`
}

// report writes the record with --json. Without --json a success writes nothing.
func (f *secretFlags) report(a *cli.App, name string, kept bool, err error) error {
	if err == nil && f.json {
		a.WriteJSON(secretRecord{Name: name, Kept: kept})
	}
	return err
}

func (f *secretFlags) open(a *cli.App) (secretStore, string, error) {
	switch {
	case f.file != "":
		key := state.IdentityFile(a, f.file, f.identity)
		return vault.At(f.file, key), key, nil
	case f.identity != "":
		return nil, "", cli.UsageProblem("--identity opens an encrypted file: name it with --file")
	}
	return systemKeyring{}, "", nil
}

// Command returns remit secret.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "secret", Short: "Store secrets that calls use and no model sees",
		Long: "Stores secrets in the system's keyring or, with --file, in a file encrypted with age. Calls can use a secret with\n" +
			"remit run --secret NAME, or --secret NAME=file:PATH, if the policy allows \"use secret://NAME\".",
		Args: cli.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(setCommand(a), listCommand(a), removeCommand(a))
	return cmd
}

func setCommand(a *cli.App) *cobra.Command {
	var f secretFlags
	return f.add(&cobra.Command{
		Use: "set NAME", Short: "Store a secret, or replace it",
		Long: "Reads the value from the terminal, without showing it, or from standard input. An argument would be visible to other\n" +
			"processes. The command drops one line end after the value.",
		Args: cli.WantIDs(1, 1, "one name"),
		RunE: func(_ *cobra.Command, args []string) error { return setSecret(a, f, args[0]) },
	})
}

func listCommand(a *cli.App) *cobra.Command {
	var f secretFlags
	return f.add(&cobra.Command{
		Use: "list", Short: "List the names of the secrets", Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, _, err := f.open(a)
			if err != nil {
				return err
			}
			names, err := c.Names()
			if err != nil {
				return storeProblem(err)
			}
			if f.json {
				a.WriteJSON(struct {
					Names []string `json:"names"`
				}{cli.Listed(names)})
				return nil
			}
			for _, name := range names {
				_, _ = fmt.Fprintln(a.Out, cli.Printable(name))
			}
			return nil
		},
	})
}

func removeCommand(a *cli.App) *cobra.Command {
	var f secretFlags
	return f.add(&cobra.Command{
		Use: "remove NAME", Short: "Remove a secret", Args: cli.WantIDs(1, 1, "one name"),
		RunE: func(_ *cobra.Command, args []string) error {
			c, _, err := f.open(a)
			if err == nil {
				err = c.Remove(args[0])
			}
			if errors.Is(err, secrets.ErrNotFound) {
				return cli.UsageProblem(fmt.Sprintf("there is no secret %q", args[0]))
			}
			return f.report(a, args[0], false, storeProblem(err))
		},
	})
}

// storeProblem returns the problem of a store that cannot be opened.
func storeProblem(err error) error {
	if err == nil {
		return nil
	}
	return &cli.Problem{Code: cli.ExitUsage, What: "the secrets cannot be opened", Why: cli.PlainError(err), Fix: "unlock the keyring, or keep them in a file: --file PATH"}
}

func setSecret(a *cli.App, f secretFlags, name string) error {
	if _, err := perm.KindSecret.Resource(name); err != nil {
		return cli.UsageProblem(fmt.Sprintf("%q is no name of a secret: valid are letters, digits and _.-", name))
	}
	c, key, err := f.open(a)
	if err != nil {
		return err
	}
	value, err := readSecret(a, name)
	if err != nil {
		return err
	}
	if n := len(value); n < secrets.MinValue || n > secrets.MaxValue {
		return cli.UsageProblem(fmt.Sprintf("the value has %d bytes; valid are %d to %d: a shorter one could not be kept out of outputs", n, secrets.MinValue, secrets.MaxValue))
	}
	if key != "" {
		err := vault.NewIdentity(key)
		if err == nil {
			_, _ = fmt.Fprintf(a.Err, "remit: made the key %s: it opens the secrets of the file; store it elsewhere\n", cli.Printable(key))
		} else if !errors.Is(err, fs.ErrExist) {
			return storeProblem(err)
		}
	}
	return f.report(a, name, true, storeProblem(c.Set(name, value)))
}

// readSecret reads the value from the terminal without showing it, or from
// standard input.
func readSecret(a *cli.App, name string) (string, error) {
	if f, ok := a.In.(*os.File); ok && cli.IsTerminal(f) {
		_, _ = fmt.Fprintf(a.Err, "value of %s (not shown): ", cli.Printable(name))
		value, err := term.ReadPassword(int(f.Fd()))
		_, _ = fmt.Fprintln(a.Err)
		if err != nil {
			return "", fmt.Errorf("the value could not be read: %w", err)
		}
		return string(value), nil
	}
	data, err := io.ReadAll(io.LimitReader(a.In, secrets.MaxValue+3))
	return strings.TrimRight(string(data), "\r\n"), err
}
