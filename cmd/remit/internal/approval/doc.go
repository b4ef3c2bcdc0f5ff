// Package approval decides who may approve a pending call, and shows a person
// what the call would do: the settings of a state folder, the passphrase, the
// prompt, notices and previews.
package approval
