module agents

go 1.19

require agentd/agent v0.0.0

replace agentd/agent => ../agentd/go
