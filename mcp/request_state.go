package mcp

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/remit-dev/remit/perm"
)

// requestState is what a client carries from an approval request to its answer.
// It grants nothing: it names the call and its approval request, and the server
// compares each field with the call as it is then.
type requestState struct {
	V         int    `json:"v"`
	Session   string `json:"session"`
	Txn       string `json:"txn"`
	Call      string `json:"call"`
	Request   string `json:"request"`   // digest of all that the client showed
	Tool      string `json:"tool"`      // digest of the declaration
	Input     string `json:"input"`     // digest
	Revision  string `json:"revision"`  // of the policy
	Exclusive bool   `json:"exclusive"` // the transaction belongs to the call
	Expires   int64  `json:"expires"`   // Unix milliseconds

	// AsyncCall and Round identify the async call and the number of its client
	// request. Such a state names no call.
	AsyncCall string `json:"async_call,omitempty"`
	Round     int    `json:"round,omitempty"`
}

const claimVersion = 1

var errClaim = errors.New("the request state is none that this server gave for this call, or it was changed")

// claimOf returns the request state of an approval request.
func (q *approvalRequest) claimOf(alone bool) requestState {
	var d perm.DecisionRecord
	_ = json.Unmarshal(q.call.Asked.Decision, &d) // the digest of the approval request covers the revision too
	return requestState{
		V: claimVersion, Session: q.txn.Session, Txn: q.txn.ID, Call: q.call.Ref.Call, Request: q.call.Asked.Digest,
		Tool: q.call.Asked.Tool.Digest, Input: q.call.Asked.InputDigest, Revision: d.Revision, Exclusive: alone, Expires: q.call.Asked.Expires.UnixMilli(),
	}
}

// stateSealer encrypts and authenticates request states.
type stateSealer struct{ aead cipher.AEAD }

// newSealer makes a sealer from a secret. If the secret is nil, it uses a
// random one that ends with the process.
func newSealer(secret []byte) (stateSealer, error) {
	if secret == nil {
		secret = make([]byte, 32)
		_, _ = rand.Read(secret) // it never fails
	}
	if len(secret) < 16 {
		return stateSealer{}, fmt.Errorf("mcp: the key has %d bytes, and at least 16 are needed", len(secret))
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "remit/mcp/request-state/v1", 32)
	if err != nil {
		return stateSealer{}, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return stateSealer{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return stateSealer{aead}, err
}

// seal encrypts a request state. Only this server can read it, and only for its
// session.
func (s stateSealer) seal(c requestState) (string, error) {
	plain, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, []byte(c.Session))), nil
}

// open decrypts a text that a session sends.
func (s stateSealer) open(text, session string, now time.Time) (c requestState, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || base64.RawURLEncoding.EncodeToString(sealed) != text { // the decoder ignores line breaks
		return c, errClaim
	}
	plain, err := s.aead.Open(nil, nil, sealed, []byte(session))
	if err != nil || json.Unmarshal(plain, &c) != nil || c.V != claimVersion || c.Session != session {
		return requestState{}, errClaim
	}
	if now.UnixMilli() > c.Expires {
		return requestState{}, errors.New("the time to answer is up; repeat the call without a request state to be asked again")
	}
	return c, nil
}
