package main

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) tokenCommand() *cobra.Command {
	var f runFlags
	var file string
	cmd := &cobra.Command{
		Use: "token --as ID [--role R]… [flags]", Short: "Make a session for a client of remit serve --http, and say its token",
		Long: "Makes a session, and writes the token by which a client of remit serve --http acts in it: to standard output, or to a file\n" +
			"that only you can read. Whoever has the token acts as --as. Give it the roots, tools and files of tools that the server has:\n" +
			"a session holds what there was when it was made, and no more than the server has. remit grants revoke takes it away.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if !cmd.Flags().Changed("as") {
				return usage("--as says who acts by the token")
			}
			if file == "" && cmd.Flags().Changed("out") {
				return usage("--out names no file; is a variable not set?")
			}
			if err := f.check(); err != nil {
				return err
			}
			f.session = file // which lies in no root either
			rt, closeRuntime, err := a.runtime(cmd.Context(), &f)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closeRuntime()) }()
			s, err := newMCPSession(cmd.Context(), rt, &f)
			if err != nil {
				return err
			}
			made := madeToken{Session: s.ID(), As: f.as, File: file}
			if file != "" {
				if err := writeToken(file, s.Token()); err != nil {
					return err
				}
			} else {
				made.Token = s.Token()
			}
			return a.tellToken(made, f.json)
		},
	}
	f.onAsk = "deny" // nothing is asked here
	a.sessionFlags(cmd, &f)
	cmd.Flags().StringVar(&file, "out", "", "write the token to a new `FILE` that only you can read")
	cmd.Flags().BoolVar(&f.json, "json", false, "write one JSON object")
	return cmd
}

// madeToken is a session that was made, and what proves it.
type madeToken struct {
	Session string `json:"session"`
	As      string `json:"as"`
	Token   string `json:"token,omitempty"`
	File    string `json:"file,omitempty"`
}

func (a *app) tellToken(made madeToken, asJSON bool) error {
	if asJSON {
		newJSON(a.out).write(made)
		return nil
	}
	if made.File != "" {
		_, err := fmt.Fprintf(a.out, "session %s of %s; its token is in %s\n", made.Session, printable(made.As), quoted(made.File))
		return err
	}
	_, err := fmt.Fprintln(a.out, made.Token)
	return err
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return b
}
