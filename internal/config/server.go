package config

import (
	"log/slog"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/server"
)

// Parts are what the composition root brings to a deployment besides its settings.
type Parts struct {
	Executor sallyport.Executor
	// Found are the interpreters of this host.
	Found   []sallyport.Interpreter
	Logger  *slog.Logger
	Version string
}

// Server describes the deployment. It expects resolved settings.
func (s Settings) Server(parts Parts) server.Config {
	cfg := server.Config{
		DataDir:          s.DataDir,
		Executor:         parts.Executor,
		ScriptsEnabled:   *s.scripts(),
		Interpreters:     s.AllowList(parts.Found),
		Limits:           s.Limits,
		MaxTimeout:       s.MaxTimeout,
		Grace:            s.Grace,
		MaxArgumentBytes: s.MaxArguments,
		MaxScriptBytes:   s.MaxScript,
		MaxBodyBytes:     s.MaxBody,
		MaxImportBytes:   s.MaxImport,
		SlotsTotal:       s.SlotsTotal,
		SlotsPerTenant:   s.SlotsPerTenant,
		QueueLength:      s.QueueLength,
		QueueWait:        s.QueueWait,
		Quotas:           s.quotas(),
		Retention:        s.retention(),
		Confirm:          s.Confirm != nil && *s.Confirm, ConfirmSelf: s.ConfirmSelf != nil && *s.ConfirmSelf,
		ConfirmInClient:      s.ConfirmInClient == nil || *s.ConfirmInClient,
		GrantsByPublisher:    s.Grants == "publisher",
		GrantNotice:          s.GrantNotice,
		PublishRequiresClean: s.PublishRequiresClean != nil && *s.PublishRequiresClean,
		URLImport:            s.URLImport != nil && *s.URLImport,
		URLImportPrivate:     s.URLImportPrivate != nil && *s.URLImportPrivate,
		FindingExclusions:    s.FindingExclusions,
		AuditRetention:       time.Duration(s.AuditRetentionDays) * 24 * time.Hour,
		AuditArchive:         s.AuditArchive,
		SecretKeyFile:        s.SecretKeyFile,
		ShowSecrets:          s.MaskOutputs != nil && !*s.MaskOutputs,
		OIDC:                 s.OIDC,
		PublicURL:            s.PublicURL,
		LoopbackPrincipal:    s.Profile == ProfileDev && s.Loopback(),
		Logger:               parts.Logger,
		OTel:                 s.OTel,
		Version:              parts.Version,
	}
	// An executor without isolation was accepted by that very name.
	if s.Isolation == IsolationDegrade || s.Executor == executorUnsafeLocal {
		cfg.RequiredLayers = []sallyport.Layer{}
	}
	return cfg
}

// Level is the log level as slog knows it.
func (s Settings) Level() slog.Level {
	var level slog.Level
	if level.UnmarshalText([]byte(s.LogLevel)) != nil {
		return slog.LevelInfo
	}
	return level
}
