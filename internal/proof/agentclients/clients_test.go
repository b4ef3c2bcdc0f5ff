package agentclients_test

import (
	"testing"

	"github.com/remit-dev/remit/internal/proof/agentclients"
)

func TestMain(m *testing.M) { agentclients.Main(m) }
