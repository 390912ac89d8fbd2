"""What people look at: tables and figures, made from results and embeddings."""
