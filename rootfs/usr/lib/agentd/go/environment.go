package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrNoCredentials says that the unit loads no credentials at all.
var ErrNoCredentials = errors.New("CREDENTIALS_DIRECTORY is not set; the unit loads none")

// Credential gives the content of a credential (LoadCredential).
func Credential(name string) ([]byte, error) {
	if name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
		return nil, fmt.Errorf("%q is no credential's name", name)
	}
	folder := os.Getenv("CREDENTIALS_DIRECTORY")
	if folder == "" {
		return nil, fmt.Errorf("credential %q: %w", name, ErrNoCredentials)
	}
	return os.ReadFile(filepath.Join(folder, name))
}

// StateDirectory is where the agent keeps what must survive it: the unit's StateDirectory, else fallback. It is not
// created.
func StateDirectory(fallback string) string {
	if own := os.Getenv("AGENTD_STATE_DIRECTORY"); own != "" {
		return own
	}
	if first, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); first != "" {
		return first
	}
	return fallback
}
