// Package vault stores secrets in a file encrypted with age, for machines
// without a keyring. The file is unreadable without its identity, a private key
// in a separate file. Keep that file elsewhere: in memory, on a token, with the
// service manager.
package vault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"filippo.io/age"

	"github.com/remit-dev/remit/ctxperm/secrets"
	"github.com/remit-dev/remit/internal/canon"
)

// maxFile bounds the bytes that are read of a file that another program may
// have written.
const maxFile = 4 << 20

// Vault is an encrypted file of secrets and the file of its identity. Reading
// is safe for concurrent use, also while another process writes. One of two
// concurrent writes is refused.
type Vault struct{ path, identity string }

// At returns the vault with these two files. It opens neither.
func At(path, identity string) Vault { return Vault{path: path, identity: identity} }

// NewIdentity creates an identity file, readable only by its owner. The file
// must not exist yet.
func NewIdentity(path string) error {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "# public key: %s\n%s\n", id.Recipient(), id)
	return errors.Join(err, f.Sync(), f.Close())
}

// Source returns one secret of the vault. It reads the file each time.
func (v Vault) Source(name string) secrets.Source {
	return func(context.Context) (string, error) {
		all, err := v.read()
		if err != nil {
			return "", err
		}
		value, ok := all[name]
		if !ok {
			return "", fmt.Errorf("%s in %s: %w", name, v.path, secrets.ErrNotFound)
		}
		return value, nil
	}
}

// Names returns the names of the secrets, sorted; none if the file does not
// exist yet.
func (v Vault) Names() ([]string, error) {
	if _, err := os.Stat(v.path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	all, err := v.read()
	return slices.Sorted(maps.Keys(all)), err
}

// Set stores a secret, and replaces one of the same name.
func (v Vault) Set(name, value string) error {
	return v.change(func(all map[string]string) error {
		all[name] = value
		return nil
	})
}

// Remove deletes a secret. It returns secrets.ErrNotFound if there is none.
func (v Vault) Remove(name string) error {
	return v.change(func(all map[string]string) error {
		if _, ok := all[name]; !ok {
			return fmt.Errorf("%s in %s: %w", name, v.path, secrets.ErrNotFound)
		}
		delete(all, name)
		return nil
	})
}

// contents is the encrypted document.
type contents struct {
	V       int               `json:"v"`
	Secrets map[string]string `json:"secrets"`
}

func (v Vault) read() (map[string]string, error) {
	ids, err := v.identities()
	if err != nil {
		return nil, err
	}
	f, err := os.Open(v.path)
	if err != nil {
		return nil, fmt.Errorf("the vault: %w", err)
	}
	defer f.Close()
	plain, err := age.Decrypt(io.LimitReader(f, maxFile), ids...)
	var none *age.NoIdentityMatchError
	if errors.As(err, &none) {
		return nil, fmt.Errorf("the vault %s is encrypted for another identity than %s", v.path, v.identity)
	}
	if err != nil {
		return nil, fmt.Errorf("the vault %s is damaged, or no file of age: %w", v.path, err)
	}
	data, err := io.ReadAll(plain)
	if err != nil {
		return nil, fmt.Errorf("the vault %s is damaged: %w", v.path, err)
	}
	c := contents{Secrets: map[string]string{}}
	if canon.Decode(data, &c) != nil || c.V != 1 || c.Secrets == nil { // the error would repeat the decrypted content
		return nil, fmt.Errorf("the vault %s holds something else than secrets of version 1", v.path)
	}
	return c.Secrets, nil
}

// identities reads the private keys. It refuses a file that others can read,
// because its keys are not secret.
func (v Vault) identities() ([]age.Identity, error) {
	f, err := os.Open(v.identity)
	if err != nil {
		return nil, fmt.Errorf("the identity of the vault: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others can read the identity %s (mode %04o); run chmod 600 on it, and replace the secrets if another user has read it", v.identity, info.Mode().Perm())
	}
	ids, err := age.ParseIdentities(io.LimitReader(f, maxFile))
	if err != nil { // the error could repeat a key
		return nil, fmt.Errorf("%s is not an identity file of age", v.identity)
	}
	return ids, nil
}

// change reads, changes and replaces the file. The file is complete at every
// moment: old or new.
func (v Vault) change(f func(map[string]string) error) (err error) {
	lock := v.path + ".lock"
	held, err := os.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("another process is changing %s; if none is, remove %s", v.path, lock)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Close(), os.Remove(lock)) }()
	all := map[string]string{}
	if _, err := os.Stat(v.path); !errors.Is(err, fs.ErrNotExist) {
		if all, err = v.read(); err != nil {
			return err
		}
	}
	if err := f(all); err != nil {
		return err
	}
	return v.write(all)
}

func (v Vault) write(all map[string]string) error {
	ids, err := v.identities()
	if err != nil {
		return err
	}
	to, err := recipients(ids)
	if err != nil {
		return fmt.Errorf("%s: %w", v.identity, err)
	}
	plain, err := json.Marshal(contents{V: 1, Secrets: all})
	if err != nil {
		return err
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, to...)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return err
	}
	if sealed.Len() >= maxFile {
		return fmt.Errorf("the vault would have %d bytes; at most %d are read", sealed.Len(), maxFile)
	}
	return replace(v.path, sealed.Bytes())
}

// recipients returns the public keys of identities.
func recipients(ids []age.Identity) (to []age.Recipient, err error) {
	for _, id := range ids {
		switch k := id.(type) {
		case *age.X25519Identity:
			to = append(to, k.Recipient())
		case *age.HybridIdentity:
			to = append(to, k.Recipient())
		default:
			return nil, errors.New("no public key can be made of this kind of identity; valid are those of age-keygen")
		}
	}
	return to, nil
}

func replace(path string, data []byte) error {
	draft := path + ".new"
	// Remove the draft of a killed process, and never write through it: it can
	// be a link by now, or readable for others.
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(draft, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	if runtime.GOOS == "windows" { // a folder cannot be synced
		return nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
