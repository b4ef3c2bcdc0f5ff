// Package secret has the verbs that keep secrets in the keyring or in an
// encrypted file.
package secret
