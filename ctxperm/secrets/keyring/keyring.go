// Package keyring stores secrets in the operating system's keyring: the
// keychain of macOS, the credential manager of Windows, the Secret Service of a
// Linux desktop.
package keyring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	zalando "github.com/zalando/go-keyring"

	"github.com/remit-dev/remit/ctxperm/secrets"
)

// Service is the service name of the secrets of the command.
const Service = "remit"

// index is the entry that lists the others, because a keyring cannot list its
// names.
const index = ".names"

// Source reads an entry of the keyring.
func Source(service, user string) secrets.Source {
	return func(context.Context) (string, error) {
		value, err := zalando.Get(service, user)
		if err != nil {
			return "", wrapError(service, user, err)
		}
		return value, nil
	}
}

// Set stores a secret of the command, and replaces one of the same name.
func Set(name, value string) error {
	names, err := Names()
	if err != nil {
		return err
	}
	if err := zalando.Set(Service, name, value); err != nil {
		return wrapError(Service, name, err)
	}
	return list(append(names, name))
}

// Remove deletes a secret of the command. It returns secrets.ErrNotFound if
// there is none.
func Remove(name string) error {
	names, err := Names()
	if err != nil {
		return err
	}
	if err := zalando.Delete(Service, name); err != nil {
		return wrapError(Service, name, err)
	}
	return list(slices.DeleteFunc(names, func(n string) bool { return n == name }))
}

// Names returns the names of the secrets that Set stored, sorted.
func Names() ([]string, error) {
	text, err := zalando.Get(Service, index)
	if errors.Is(err, zalando.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, wrapError(Service, index, err)
	}
	var names []string
	if err := json.Unmarshal([]byte(text), &names); err != nil {
		return nil, fmt.Errorf("the keyring's entry %s/%s is not a list of names: remove it, and set the secrets again", Service, index)
	}
	return names, nil
}

func list(names []string) error {
	slices.Sort(names)
	text, err := json.Marshal(slices.Compact(names))
	if err == nil {
		err = zalando.Set(Service, index, string(text))
	}
	if err != nil {
		return wrapError(Service, index, err)
	}
	return nil
}

func wrapError(service, user string, err error) error {
	switch {
	case errors.Is(err, zalando.ErrNotFound):
		return fmt.Errorf("keyring entry %s/%s: %w", service, user, secrets.ErrNotFound)
	case errors.Is(err, zalando.ErrSetDataTooBig):
		return fmt.Errorf("keyring entry %s/%s: this system's keyring takes no value of that size", service, user)
	}
	return fmt.Errorf("the keyring of this system cannot be used: %w", err)
}
