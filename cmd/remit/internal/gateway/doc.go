// Package gateway has the verbs that set up the gateway: init, accept, login,
// logout, connect and disconnect.
package gateway
