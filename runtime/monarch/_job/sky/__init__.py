"""`SkyPilotJob`: hosts that SkyPilot gives."""
